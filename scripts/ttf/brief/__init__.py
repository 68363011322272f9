"""The brief of a trace: what its first screen says, what it cannot say, and what to do. One implementation for all.

Rule summarise makes it from the numbers and tables of a trace and writes brief.json beside metrics.json; page,
comparison, PDF, planner, site and console read that file. Its texts are those of `ttf.report.said`.
"""
