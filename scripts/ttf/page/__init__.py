"""The page of a trace. Imports point one way: texts and numbers, the brief with its tiles, the sections, the page.

Rule summarise computes the brief (findings, withheld estimates and actions) from the numbers and tables of a trace. It
writes brief.json next to metrics.json; page, comparison, PDF, planner, site and console read that file. Pages are
templates filled with brief, metrics, tables and charts.
"""
