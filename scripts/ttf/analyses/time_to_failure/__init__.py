"""Time to failure: When do failures occur?"""
