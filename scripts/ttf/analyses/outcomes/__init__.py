"""Outcomes: How do jobs end?"""
