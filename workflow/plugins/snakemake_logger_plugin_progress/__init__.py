"""Replaces Snakemake's terminal output during a run; `make` finds this plugin in the checkout."""

from study.progress import Progress as LogHandler

__all__ = ["LogHandler"]
