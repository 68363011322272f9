"""The numbers that the report's prose uses, a module per theme; prose reads them from nowhere else."""
