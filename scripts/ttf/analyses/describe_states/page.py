from ttf.report.states import states_tables

tables = states_tables
