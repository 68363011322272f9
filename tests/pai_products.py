"""The jobs and placements of a PAI trace from its typed raw tables, in any number of partitions and shares."""

import tempfile
from pathlib import Path

import polars as pl
from ttf.formats.pai2020 import derive as pai2020
from ttf.formats.protocol import Source
from ttf.partitions import Partitions, read_results, results_of, write_results


def jobs_of(raw, number: int = 1, shares: int = 1) -> pl.DataFrame:
    return _made(pai2020.task_totals, pai2020.jobs, raw, number, shares)


def placements_of(raw, number: int = 1, shares: int = 1) -> pl.DataFrame:
    return _made(pai2020.instance_tasks, pai2020.placements, raw, number, shares)


def _made(make, product, raw, number, shares):
    with tempfile.TemporaryDirectory() as folder:
        if shares == 1:
            return product(Source(raw, results=results_of(make, raw, Partitions(Path(folder), number)))).collect()
        folders = [Path(folder, str(share)) for share in range(shares)]
        for share, written in enumerate(folders):
            write_results(make, raw, Partitions(Path(folder), number, share, shares), written)
        return product(Source(raw, results=read_results(make, folders))).collect()
