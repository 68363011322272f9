"""The numbers of a study against thresholds and against earlier ones."""
