"""Queue and utilisation: How long do jobs wait, and how full is the cluster?"""
