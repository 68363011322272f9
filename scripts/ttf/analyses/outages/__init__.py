"""Node outages: When are nodes down, for how long, and how many spares are needed?"""
