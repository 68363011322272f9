"""What analyses draw and word with: charts, tables, numbers and phrases of the page."""
