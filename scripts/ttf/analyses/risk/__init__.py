"""Failure risk: Can failure be told in advance?"""
