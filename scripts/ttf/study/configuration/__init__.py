"""The configuration of a study: read, checked with file, line and key, and completed."""
