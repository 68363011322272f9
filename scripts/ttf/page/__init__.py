"""The page of a trace, in one direction: words and numbers, the brief with its tiles, the sections, the page.

Rule summarise makes the brief (what the first screen says, what it cannot say, and what to do) from the numbers and
tables of a trace and writes brief.json beside metrics.json; page, comparison, PDF, planner, site and console read that
file. Pages are templates filled with brief, metrics, tables and charts.
"""
