"""Nodes and periods: Is it always, and everywhere, the same?"""
