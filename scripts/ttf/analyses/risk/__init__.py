"""Failure risk: Can failures be predicted?"""
