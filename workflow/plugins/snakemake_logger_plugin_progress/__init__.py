"""Replaces Snakemake's terminal output during a run; `ttf` names this plugin."""

from ttf.study.running.progress import Progress as LogHandler

__all__ = ["LogHandler"]
