from ttf.report.sizes import sizes_tables

tables = sizes_tables
