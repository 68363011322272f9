from ttf.report.taxonomy import taxonomy_tables

tables = taxonomy_tables
