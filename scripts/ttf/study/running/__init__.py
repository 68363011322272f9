"""What a run of Snakemake needs of a study: its start, its jobs, their resources, and what the terminal shows."""
