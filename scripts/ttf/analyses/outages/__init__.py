"""Node outages: When are nodes down, for how long, and what does it take?"""
