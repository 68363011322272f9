from ttf.report.use import epochs_tables

tables = epochs_tables
