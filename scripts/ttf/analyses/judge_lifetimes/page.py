from ttf.report.lifetimes import lifetimes_tables

tables = lifetimes_tables
