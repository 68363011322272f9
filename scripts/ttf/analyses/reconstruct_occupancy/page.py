from ttf.report.occupancy import occupancy_tables

tables = occupancy_tables
