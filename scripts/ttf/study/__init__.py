"""What the Snakefile needs to know before a job runs: configuration, raw files, imports of scripts."""
