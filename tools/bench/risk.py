"""Measure the failure risk of 1,261,050 jobs against scikit-learn.

Features, three origins and their tests; and the logistic regression alone, against scikit-learn's on the same design.

usage as one side: risk.py analysis JOBS | design JOBS FILE | study FILE | peer FILE
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":  # before NumPy and Polars are imported: one thread each, as in the rules of the study
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")} | {"POLARS_MAX_THREADS": "1"}

import numpy as np
from clock import ROOT, machine, measure_cost, measure_in_turn, report

sys.path.insert(0, str(ROOT / "tests" / "support"))
JOBS, SEED = 1_261_050, 2026
FEATURES = {
    "gpus": {"kind": "numeric", "column": "gpu_milli"},
    "memory": {"kind": "numeric", "column": "mem_mib"},
    "gpu_type": {"kind": "category", "column": "gpu_type", "vocabulary": 12},
    "clock": {"kind": "clock"},
    "history": {"kind": "history", "keys": [["user"], ["recurrence_group"]]},
}
SETTINGS = {"latest_jobs": JOBS, "landmark_s": 3600, "trial_minutes": 10, "seed": SEED}
# The study's objective has a prior precision of 1, which is C = 1; the tolerance is similar.
PEER = {"C": 1.0, "tol": 1e-6, "max_iter": 1000}


def compare(folder: Path, rounds: int) -> dict:
    """Measure the analysis, and both logistic regressions."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs, design = folder / "jobs.parquet", folder / "design.npz"
    report(f"making {JOBS:,} jobs")
    script = [sys.executable, str(Path(__file__).resolve())]
    measure_cost([*script, "make", str(jobs)], folder)
    measure_cost([*script, "design", str(jobs), str(design)], folder)
    sides = {
        "analysis": [*script, "analysis", str(jobs)],
        "study": [*script, "study", str(design)],
        "peer": [*script, "peer", str(design)],
        "start": [*script, "start", str(design)],
    }
    costs = {name: vars(cost) for name, cost in measure_in_turn(sides, folder, rounds).items()}
    return {"jobs": JOBS, "machine": machine("numpy", "scikit-learn")} | costs


def make(file: str) -> None:
    import made_risk

    made_risk.with_users(JOBS, SEED).drop("true_risk").write_parquet(file)


def analysis(file: str) -> None:
    from ttf.analyses.risk.predict_failure.compute import compute
    from ttf.records.inputs import Inputs

    risk = {"features": FEATURES, "clock": "UTC", "unit": "job"}
    tables = compute(Inputs({"jobs": file}, {}, SETTINGS | {"risk": risk}))
    assert tables["risk_evaluation"]["estimate"].count()


def design(file: str, design_file: str) -> None:
    import polars as pl
    from ttf.analyses.shared.risk.encoder import Encoder
    from ttf.analyses.shared.risk.features import compute_job_features, parse_features
    from ttf.analyses.shared.risk.splits import split_at_origins
    from ttf.analyses.shared.risk.training_jobs import load_population

    features = parse_features(FEATURES)
    jobs = load_population(pl.scan_parquet(file), [column for feature in features for column in feature.columns])
    training_rows = np.flatnonzero(split_at_origins(jobs)[-1].learn)
    training_jobs = compute_job_features(jobs.jobs, features, "UTC", jobs).take(training_rows)
    training_design = Encoder.fit(features, training_jobs).design(training_jobs)
    np.savez(design_file, rows=training_design.rows(slice(None))[:, 1:], failed=jobs.failed[training_rows])


def start(file: str) -> None:
    """Read the design, which is the start-up of both sides."""
    with np.load(file) as arrays:
        assert len(arrays["rows"]) == len(arrays["failed"])


def study(file: str) -> None:
    from ttf.stats.regression.design import Design
    from ttf.stats.regression.logistic import fit

    with np.load(file) as arrays:
        assert fit(Design(arrays["rows"], ()), arrays["failed"]).converged


def peer(file: str) -> None:
    from sklearn.linear_model import LogisticRegression

    with np.load(file) as arrays:
        LogisticRegression(**PEER).fit(arrays["rows"], arrays["failed"])


if __name__ == "__main__":
    sides = {side.__name__: side for side in (make, analysis, design, start, study, peer)}
    sides[sys.argv[1]](*sys.argv[2:])
