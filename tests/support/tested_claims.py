"""Test files, besides unit/test_scorecard.py, that test the quantity of a published finding on a micro-trace."""

from pathlib import Path

import polars as pl
import pytest
from shipped_claims import CLAIMS

# Prefix of claim ids -> the file under tests/unit/ that computes every such claim.
ELSEWHERE = {
    "infinitehbd-": "test_claims_outages.py",
    "lanl-": "test_claims_lanl.py",
    "openb-": "test_claims_pai.py",
    "philly-delay-": "test_claims_queueing.py",
    "philly-window-": "test_claims_queueing.py",
    "philly-attempts-": "test_claims_queueing.py",
    "philly-trials-": "test_claims_queueing.py",
    "philly-occupancy-": "test_claims_occupancy.py",
    "philly-gpu-use-": "test_claims_use.py",
    "philly-notebook-gpu-use-": "test_claims_use.py",
    "philly-notebook-dedicated-": "test_claims_use.py",
    "philly-notebook-host-": "test_claims_use.py",
    "philly-dedicated-": "test_claims_use.py",
    "philly-host-": "test_claims_use.py",
    **{
        f"pai-{name}": "test_claims_pai.py"
        for name in (
            *("hour-", "run-time-all-", "asked-on-", "jobs-", "tasks-with-gpu", "failure-share-with-gpu"),
            *("failure-share-instances", "largest-", "roles", "machines-", "gpus-", "gang-", "waits-", "wait-shared-"),
            *("wait-whole-", "wait-v100-instances-", "request-p95-", "users"),
            *(f"run-time-{kind}-p75" for kind in ("t4", "misc", "p100", "v100", "v100m32")),
        )
    },
    "rsc": "test_claims_rsc.py",
    **{
        f"{name}-": "test_claims_printed.py"
        for name in ("llama3", "survey", "delta", "ampere", "byterobust", "tpuv4", "crusoe")
    },
    "acme-failures-": "test_claims_rsc.py",
    "acme-both-": "test_claims_rsc.py",
    "acme-summary-": "test_claims_rsc.py",
    "helios-all-": "test_claims_rsc.py",
    "helios-summary-": "test_claims_rsc.py",
    "philly-summary-": "test_claims_rsc.py",
}


def stands_elsewhere(claim_id: str) -> bool:
    return claim_id.startswith(tuple(ELSEWHERE))


def claims_of(file: str) -> list[dict]:
    """Return the findings with a quantity that this test file computes."""
    prefixes = tuple(prefix for prefix, name in ELSEWHERE.items() if name == Path(file).name)
    return [claim for claim in CLAIMS if claim["id"].startswith(prefixes) and "quantity" in claim]


def check_computed(name: str, table: pl.DataFrame) -> None:
    """Compare a scorecard with its snapshot, whose answers were first worked out by hand or in plain Python.

    A new claim needs a line there, read with care.
    """
    answers = pl.read_csv(Path(__file__).parents[1] / f"snapshots/claims_{name}.csv")
    computed = dict(table.select("id", "computed").iter_rows())
    assert computed == pytest.approx(dict(answers.iter_rows()), rel=1e-9)
