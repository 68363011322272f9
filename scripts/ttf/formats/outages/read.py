"""Read a table of outages of any layout, like a table of jobs, with the mapping of the registry."""

from ttf.formats.table.read import READING

__all__ = ["READING"]
