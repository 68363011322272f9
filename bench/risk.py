"""Time and memory of the failure risk of 1,261,050 jobs: features, three origins, their tests, without and with the
gradient boosting of scikit-learn; and of the logistic regression alone, against scikit-learn's on the same design.

usage as one side: risk.py room JOBS CHALLENGER | design JOBS FILE | ours FILE | peer FILE
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":  # before NumPy and Polars are there: one thread each, as the rules of the study have
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")} | {"POLARS_MAX_THREADS": "1"}

import numpy as np
from clock import ROOT, cost_of, in_turn, machine, tell

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]
JOBS, SEED = 1_261_050, 2026
FEATURES = {
    "gpus": {"kind": "numeric", "column": "gpu_milli"},
    "memory": {"kind": "numeric", "column": "mem_mib"},
    "gpu_type": {"kind": "category", "column": "gpu_type", "vocabulary": 12},
    "clock": {"kind": "clock"},
    "history": {"kind": "history", "keys": [["user"], ["recurrence_group"]]},
}
SETTINGS = {"latest_jobs": JOBS, "landmark_s": 3600, "trial_minutes": 10, "seed": SEED}
# The same objective as ours, whose precision is 1: C = 1; to a like precision.
PEER = {"C": 1.0, "tol": 1e-6, "max_iter": 1000}


def compare(folder: Path, rounds: int) -> dict:
    """Costs of the room without and with the challenger, and of both logistic regressions."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs, design = folder / "jobs.parquet", folder / "design.npz"
    tell(f"making {JOBS:,} jobs")
    me = [sys.executable, str(Path(__file__).resolve())]
    cost_of([*me, "make", str(jobs)], folder)
    cost_of([*me, "design", str(jobs), str(design)], folder)
    sides = {
        "room": [*me, "room", str(jobs), ""],
        "challenger": [*me, "room", str(jobs), "challenger"],
        "ours": [*me, "ours", str(design)],
        "peer": [*me, "peer", str(design)],
        "start": [*me, "start", str(design)],
    }
    found = {name: vars(cost) for name, cost in in_turn(sides, folder, rounds).items()}
    return {"jobs": JOBS, "machine": machine("numpy", "scikit-learn")} | found


def make(file: str) -> None:
    import made_risk

    made_risk.with_users(JOBS, SEED).drop("true_risk").write_parquet(file)


def room(file: str, challenger: str) -> None:
    from ttf.analyses.risk.predict_failure.compute import compute
    from ttf.records.inputs import Inputs

    risk = {"features": FEATURES, "clock": "UTC", "unit": "job"}
    tables = compute(Inputs({"jobs": file}, {}, SETTINGS | {"risk": risk, "challenger": bool(challenger)}))
    assert tables["risk_evaluation"]["estimate"].count()


def design(file: str, to: str) -> None:
    import polars as pl
    from ttf.analyses.shared.risk.encoder import Encoder
    from ttf.analyses.shared.risk.features import features_of, submitted
    from ttf.analyses.shared.risk.splits import temporal
    from ttf.analyses.shared.risk.training_jobs import population

    features = features_of(FEATURES)
    jobs = population(pl.scan_parquet(file), [column for feature in features for column in feature.columns])
    learn = np.flatnonzero(temporal(jobs)[-1].learn)
    known = submitted(jobs.jobs, features, "UTC", jobs).take(learn)
    written = Encoder.fit(features, known).design(known)
    np.savez(to, rows=written.rows(slice(None))[:, 1:], failed=jobs.failed[learn])


def start(file: str) -> None:
    """Both sides' start: reading the design."""
    with np.load(file) as held:
        assert len(held["rows"]) == len(held["failed"])


def ours(file: str) -> None:
    from ttf.analyses.shared.risk.encoder import Design
    from ttf.analyses.shared.risk.logistic import fit

    with np.load(file) as held:
        assert fit(Design(held["rows"], ()), held["failed"]).converged


def peer(file: str) -> None:
    from sklearn.linear_model import LogisticRegression

    with np.load(file) as held:
        LogisticRegression(**PEER).fit(held["rows"], held["failed"])


if __name__ == "__main__":
    sides = {side.__name__: side for side in (make, room, design, start, ours, peer)}
    sides[sys.argv[1]](*sys.argv[2:])
