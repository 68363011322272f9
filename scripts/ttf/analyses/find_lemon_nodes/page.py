from ttf.report.lemons import lemon_tables

tables = lemon_tables
