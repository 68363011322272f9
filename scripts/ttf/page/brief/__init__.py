"""The brief of a trace: what happened, in tiles, and what to do."""
