from ttf.report.philly_checks import philly_checks

tables = philly_checks
