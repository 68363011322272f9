"""Which nodes fail more than others."""
