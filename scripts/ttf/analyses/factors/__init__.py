"""Factors: What is associated with failure, and with run time?"""
