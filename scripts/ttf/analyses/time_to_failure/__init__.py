"""Time to failure: When do jobs fail?"""
