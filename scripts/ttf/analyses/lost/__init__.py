"""GPU time in failures: What do failures cost?"""
