"""What every wing may use: words, contracts, tables on the disk, the process of a job, provenance."""
