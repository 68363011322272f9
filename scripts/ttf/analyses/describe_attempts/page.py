from ttf.report.queueing import queueing_tables

tables = queueing_tables
