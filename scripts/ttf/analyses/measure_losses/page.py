from ttf.report.lost_work import lost_work_tables

tables = lost_work_tables
