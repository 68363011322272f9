"""Data quality: the analyses of this section of the page."""
