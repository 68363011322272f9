"""The jobs and lives of every trace of the study, side by side."""

import polars as pl

from ttf import compare
from ttf.analyses.compare_traces import TRACES
from ttf.inputs import Inputs


def compute(given: Inputs) -> dict:
    parts = {name: [] for name in compare.SCHEMAS}
    populations, jobs_files = [], iter(given.files["jobs"])
    for (trace, about), lives_file in zip(given.settings.about.items(), given.files["lives"], strict=True):
        subject, reason = compare.Subject(trace, **about), None
        row = {"trace": trace, "unit": subject.unit, "gives": subject.gives, "synthetic": subject.synthetic}
        if subject.gives == "jobs":
            jobs = pl.read_parquet(next(jobs_files), columns=compare.JOBS_READ)
            row |= compare.population(jobs)
            reason = compare.no_gpu_jobs(jobs)
            for name, table in compare.compared_jobs(subject, jobs).items():
                parts[name].append(table)
        lives = pl.read_parquet(lives_file, columns=compare.LIVES_READ)
        parts["mttf"].append(compare.compared_lives(subject, lives, reason))
        populations.append(row)
    tables = compare.side_by_side(parts)
    return {f"compared_{name}": table for name, table in tables.items()} | {
        "compared_traces": TRACES.frame(populations)
    }
