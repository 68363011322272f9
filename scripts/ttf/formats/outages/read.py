"""Reads a table of outages of any layout: as one of jobs, by the mapping of the registry."""

from ttf.formats.table.read import READING

__all__ = ["READING"]
