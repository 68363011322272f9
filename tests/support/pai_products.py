"""The jobs and placements of a PAI trace from its typed raw tables, in any number of partitions and shares."""

import tempfile
from pathlib import Path

import polars as pl
from ttf.engine.storage.partitions import Partitions, compute_results, read_results, write_results
from ttf.formats.pai2020 import derive as pai2020
from ttf.formats.protocol import Source


def derive_jobs(raw, number: int = 1, shares: int = 1) -> pl.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        if shares == 1:
            results = compute_results(pai2020.task_totals, raw, Partitions(Path(folder), number))
        else:
            folders = [Path(folder, str(share)) for share in range(shares)]
            for share, outputs in enumerate(folders):
                write_results(pai2020.task_totals, raw, Partitions(Path(folder), number, share, shares), outputs)
            results = read_results(pai2020.task_totals, folders)
        return pai2020.jobs(Source(raw, results=results)).collect()


def derive_placements(raw) -> pl.DataFrame:
    return pai2020.placements(Source(raw, jobs=derive_jobs(raw).lazy())).collect()
