from ttf.report.use import utilisation_tables

tables = utilisation_tables
