"""Causes: Why do attempts fail?"""
