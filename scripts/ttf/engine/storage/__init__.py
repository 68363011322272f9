"""Files and tables on the disk."""
