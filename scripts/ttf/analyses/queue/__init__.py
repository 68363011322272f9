"""Queue and utilisation: How long do jobs wait, how full is the cluster?"""
