"""The common records that raw tables are turned into: jobs, runs, durations, outages, and what repeats in them."""
