"""Synthetic traces: one module for each format that a sample is made of."""
