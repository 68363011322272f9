"""The common records that raw tables are turned into: jobs, runs, lives, outages, and what repeats in them."""
