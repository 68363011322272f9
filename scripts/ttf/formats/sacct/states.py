"""The states of a Slurm job: what each means for the job, and for the one run that a record of it tells of."""

import polars as pl
from ttf.formats.declared import declared, outcomes_of

OUTCOMES = outcomes_of("sacct")
# A run that the scheduler ended for reasons of its own: it neither failed nor finished.
OUTCOMES_OF_A_RUN = OUTCOMES | {"PREEMPTED": "cancelled", "REQUEUED": "cancelled"}
# After these, the next record of the same id is the same job.
CONTINUED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "RESIZING")
# Hardware or system software ended the run.
INFRASTRUCTURE = declared("sacct")["infra_failures"]["states"]
# States in which a job that never got a node may have ended, with one time for start and end.
ENDED_UNSTARTED = ("CANCELLED", "REVOKED", "DEADLINE")


def state_word(state: pl.Expr) -> pl.Expr:
    """`CANCELLED` of `CANCELLED by 1000`."""
    return state.str.strip_chars().str.extract(r"^(\S+)")


def cancelled_by(state: pl.Expr) -> pl.Expr:
    """The numeric user id after `CANCELLED by`, blank where there is none."""
    return state.str.extract(r"^\s*CANCELLED\s+by\s+(\d+)").cast(pl.Int64, strict=False)
