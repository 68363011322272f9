from ttf.report.study1 import study1_tables

tables = study1_tables
