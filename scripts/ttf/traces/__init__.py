"""One module per trace format: raw tables to jobs."""
