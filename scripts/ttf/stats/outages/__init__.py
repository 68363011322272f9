"""Outages of many units together: how many are down at once, how near they are, and what chance would make of them."""
