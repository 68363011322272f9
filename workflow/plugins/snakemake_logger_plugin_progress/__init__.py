"""What the terminal shows of a run, in place of Snakemake's own lines; `make` finds it in the checkout."""

from study.progress import Progress as LogHandler

__all__ = ["LogHandler"]
