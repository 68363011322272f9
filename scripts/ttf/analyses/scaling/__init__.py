"""Scaling with job size: How does reliability fall with size?"""
