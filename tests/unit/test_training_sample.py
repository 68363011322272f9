"""The logs of training runs in the Slurm sample: their account finds the classes that were planted."""

import numpy as np
import polars as pl
import pytest
from study_runs import ROOT
from ttf.raw.training_logs.event_reader import read_rows
from ttf.raw.training_logs.profiles import Profiles
from ttf.records.infra import INFRA_COLUMNS, infra_durations
from ttf.records.jobs import JOB_COLUMNS, add_blank_columns, conform
from ttf.records.training_joins import join_jobs, list_records
from ttf.records.training_runs import find_logs_of_events, name_runs, select_events
from ttf.stats.training_time import account_run
from ttf.study.configuration.log_profiles import load_log_profiles

SIZE, SEED = 4_000, 2025
PROFILES = Profiles.from_options(load_log_profiles(ROOT / "config" / "training_log_profiles.yaml"))


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Return (log -> its job, lines and seconds by class, accounts by name of the run, Join)."""
    import sys

    sys.path.insert(0, str(ROOT / "tools/bench"))
    from samples.sacct import sample, sample_training

    plan, nodes = sample.plan(SIZE, SEED), sample.node_count(SIZE)
    failures, _ = sample.node_failures(np.random.default_rng([SEED, 1]), nodes, sample.Hazard())
    runs = sample.simulate_runs(plan, nodes, failures)
    ids, gpus = [number for number, _ in plan.job_id], plan.jobs.gpus
    logs = sample_training.plan_logs(runs, gpus, ids, sample.END_S)
    folder = tmp_path_factory.mktemp("training")
    for name, (_, lines, _) in logs.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    rows = pl.concat(part for name in logs for part in read_rows(folder / name, PROFILES, "UTC"))
    events = find_logs_of_events(select_events(rows.lazy()))
    outcomes = {"COMPLETED": "success", "NODE_FAIL": "failure", "FAILED": "failure"}
    attempts = pl.DataFrame(
        [
            {"job_id": str(ids[run.job]), "attempt": run.number, "start_s": run.start_s, "end_s": run.end_s}
            | {"runtime_s": run.start_s and run.end_s and run.end_s - run.start_s, "nodes": len(run.nodes)}
            | {"outcome": outcomes.get(run.state, "cancelled"), "gpu_milli": 1000 * gpus[run.job], "state": run.state}
            | {"node_list": [f"n{node}" for node in run.nodes], "eligible_s": run.eligible_s}
            | {"failed_node": None if run.failed_node is None else f"n{run.failed_node}"}
            for run in sorted(runs, key=lambda run: (run.job, run.number))
        ]
    )
    submits = {run.job: run.submit_s for run in reversed(runs)}
    jobs = pl.DataFrame([{"job_id": str(ids[job]), "submit_s": submits[job], "user": "u"} for job in submits])
    rules = {"states": ["NODE_FAIL"], "exit_codes": [], "reasons": [], "events": {}}
    durations = infra_durations(conform(jobs, JOB_COLUMNS), attempts, rules)
    join = join_jobs(events, list_records(durations, attempts, jobs))
    return logs, {name: account_run(run) for name, run in name_runs(events).items()}, join


def test_the_planted_classes_come_out(planted):
    logs, runs, _ = planted
    assert [*runs] == [*logs]
    for name, (_, _, truth) in logs.items():
        seconds = {label: time / 1e6 for label, time in runs[name].time_us.items() if time}
        # The scheduler's delay of a requeue is down time here, and part of the queue there.
        for label in {*seconds, *truth} - {"queued", "down"}:
            assert seconds.get(label, 0) == pytest.approx(truth.get(label, 0), abs=0.01 * sum(truth.values())), label
        assert runs[name].wall_us / 1e6 == pytest.approx(sum(truth.values()), rel=1e-6)
    assert runs["train-a.log"].time_us["stalled"] / 1e6 == pytest.approx(1_800, rel=0.02)


def test_each_log_is_joined_with_its_job(planted):
    logs, runs, join = planted
    for name, (job, _, _) in logs.items():
        assert {time.attempt.job for time in runs[name].attempts} == {str(job)}
    assert join.counts["joined_by"] == "job id or time and GPUs"
    assert join.counts["logs_without_job"] == 0


def test_causes_and_the_slow_node(planted):
    _, runs, _ = planted
    interrupted = [time.attempt for run in runs.values() for time in run.attempts if not time.attempt.ends_well]
    assert interrupted
    assert {attempt.cause for attempt in interrupted} == {"NODE_FAIL"}
    ((_, before, after),) = [change for time in runs["train-c.log"].attempts for change in time.changes]
    assert after / before == pytest.approx(1.25, rel=0.01)
    assert not [change for name in ("train-a.log", "train-b.log") for t in runs[name].attempts for change in t.changes]


def test_the_node_tells_the_cause():
    """The outage of the failed node near the end is told, and the queue begins when the job is eligible."""
    row = {"unit_id": "7", "user": "u", "submit_s": 5, "start_s": 100, "end_s": 1_000, "state": "FAILED"}
    row |= {"cause": "XID 79", "failed_node": "n1", "attempt_id": 0, "gpu_count": 8}
    durations = add_blank_columns(pl.DataFrame([row]), INFRA_COLUMNS)
    attempts = pl.DataFrame([{"outcome": "failure", "node_list": ["n1", "n2"], "eligible_s": 60}])
    outages = [("n1", 1_100, "GPU fell off the bus"), ("n2", 1_000, "other node"), ("n1", 9_000, "later")]
    outages = pl.DataFrame(outages, ["node", "start_s", "cause"], orient="row")
    (record,) = list_records(durations, attempts, pl.DataFrame({"job_id": ["7"]}), outages)
    assert (record["cause"], record["node_event"]) == ("XID 79", "GPU fell off the bus")
    assert (record["submit"], record["nodes"]) == (60_000_000, ["n1", "n2"])
    (record,) = list_records(durations, attempts.select("outcome"), pl.DataFrame({"job_id": ["7"]}))
    assert (record["submit"], record["nodes"], record["node_event"]) == (5_000_000, None, None)
