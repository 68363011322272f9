"""The states of a Slurm job: what each means for the job, and for the one run that a record of it tells of."""

import polars as pl

# Slurm's words (man page of sacct, and the job state flags of newer versions) -> the job's outcome, if its last record
# says so. PREEMPTED, REQUEUED and RESIZING end a record, not the job: with nothing after, it goes on, for a day.
OUTCOMES = {
    "COMPLETED": "success",
    "FAILED": "failure",
    "OUT_OF_MEMORY": "failure",
    "TIMEOUT": "failure",
    "NODE_FAIL": "failure",
    "BOOT_FAIL": "failure",
    "DEADLINE": "failure",
    "LAUNCH_FAILED": "failure",
    "RECONFIG_FAIL": "failure",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    "PREEMPTED": "running",
    "REQUEUED": "running",
    "RESIZING": "running",
    "RUNNING": "running",
    "SUSPENDED": "running",
    "COMPLETING": "running",
    "CONFIGURING": "running",
    "POWER_UP_NODE": "running",
    "SIGNALING": "running",
    "STAGE_OUT": "running",
    "STOPPED": "running",
    "PENDING": "waiting",
    "REQUEUE_FED": "waiting",
    "REQUEUE_HOLD": "waiting",
    "RESV_DEL_HOLD": "waiting",
    "SPECIAL_EXIT": "waiting",
}
# A run that the scheduler ended for reasons of its own: it neither failed nor finished.
OUTCOMES_OF_A_RUN = OUTCOMES | {"PREEMPTED": "cancelled", "REQUEUED": "cancelled"}
# After these, the next record of the same id is the same job.
CONTINUED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "RESIZING")
# Hardware or system software ended the run.
INFRASTRUCTURE = ("NODE_FAIL", "BOOT_FAIL")
# States in which a job that never got a node may have ended, with one time for start and end.
ENDED_UNSTARTED = ("CANCELLED", "REVOKED", "DEADLINE")


def state_word(state: pl.Expr) -> pl.Expr:
    """`CANCELLED` of `CANCELLED by 1000`."""
    return state.str.strip_chars().str.extract(r"^(\S+)")


def cancelled_by(state: pl.Expr) -> pl.Expr:
    """The numeric user id after `CANCELLED by`, blank where there is none."""
    return state.str.extract(r"^\s*CANCELLED\s+by\s+(\d+)").cast(pl.Int64, strict=False)
