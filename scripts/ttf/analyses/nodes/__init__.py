"""Nodes and periods: Does reliability vary by node or over time?"""
