"""What a large run can expect of failures."""
