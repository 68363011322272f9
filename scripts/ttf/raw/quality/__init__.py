"""Data quality that explains itself: statistics, an independent check, a suggested schema, drift."""
