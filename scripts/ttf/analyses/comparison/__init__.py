"""Comparison of the traces: the analyses of this section of the page."""
