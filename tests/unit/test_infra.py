"""Failures attributed to infrastructure by state, exit code, reason, health event or a proxy."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import made_runs
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.engine.errors import StudyError
from ttf.records.durations import DURATION_COLUMNS, durations_of_jobs
from ttf.records.infra import (
    AFTER_S,
    BEFORE_S,
    INFRA_COLUMNS,
    add_infra_failure,
    attribute_to_events,
    attribute_to_outages,
    infra_durations,
    infra_durations_of_components,
)
from ttf.records.jobs import JOB_COLUMNS, add_blank_columns
from ttf.records.record_contracts import OUTAGES
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.registry_options import find_option_file, merge_infra_failures

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = {"states": ["NODE_FAIL", "BOOT_FAIL"]}
ATTEMPTS = made_runs.ATTEMPTS | {"exit_code": pl.String, "slurm_reason": pl.String}
EVENTS = {"node": pl.String, "time_s": pl.Int64, "code": pl.String, "severity": pl.String}


def jobs(*rows):
    """Make jobs from rows of (job_id, outcome, status_raw): submitted at 0, running from 10 to 1010."""
    base = {"trace": "t", "user": "ana", "account": "acc", "submit_s": 0, "start_s": 10, "end_s": 1010}
    base |= {"runtime_s": 1000, "gpu_milli": 8000, "size": 2, "nodes": 2, "trace_end_s": 9999}
    records = [base | {"job_id": job, "outcome": outcome, "status_raw": status} for job, outcome, status in rows]
    return pl.DataFrame(records, schema=JOB_COLUMNS)


def attempts(*rows):
    """Make attempts from rows of (job_id, attempt, state, outcome[, columns]): 1000 s each, one every 2000 s."""
    records = []
    for job, number, state, outcome, *columns in rows:
        start = 10 + 2000 * number
        base = {"start_s": start, "end_s": start + 1000, "runtime_s": 1000, "gpu_milli": 16_000, "nodes": 2}
        base |= {"job_id": job, "attempt": number, "state": state, "outcome": outcome, "node_list": ["n1", "n2"]}
        records.append(base | (columns[0] if columns else {}))
    return pl.DataFrame(records, schema=ATTEMPTS)


def events(*rows):
    return pl.DataFrame(rows, schema=EVENTS, orient="row")


# --- states, exit codes, reasons


def find_marked(*arguments) -> list[int]:
    """Return the rows of the attempts that records of attempts mark as failures of infrastructure."""
    return add_infra_failure(*arguments)["infra_failure"].arg_true().to_list()


def test_attribution_by_state_exit_code_and_reason():
    trace_jobs = jobs(("a", "success", "COMPLETED"), ("b", "failure", "TIMEOUT"))
    runs = attempts(
        ("a", 0, "NODE_FAIL", "failure"),
        ("a", 1, "COMPLETED", "success"),
        ("b", 0, "FAILED", "failure", {"exit_code": "0:53"}),
        ("b", 1, "FAILED", "failure", {"slurm_reason": "NodeDown"}),
        ("b", 2, "TIMEOUT", "failure", {"exit_code": "0:53", "slurm_reason": "NodeDown"}),
        ("b", 3, "COMPLETED", "success", {"exit_code": "0:53"}),
        ("b", 4, "RUNNING", "running", {"end_s": None, "runtime_s": None}),
        ("b", 5, "NODE_FAIL", "failure", {"start_s": None}),
    )
    rules = DEFAULTS | {"exit_codes": ["0:53"], "reasons": ["NodeDown"]}
    durations = infra_durations(trace_jobs, runs, rules)
    assert runs[durations["attempt_id"]]["attempt"].equals(durations["duration_id"].alias("attempt"))
    assert durations.select("unit_id", "duration_id", "event", "cause").rows() == [
        ("a", 0, "infra_failure", "NODE_FAIL"),
        ("a", 1, None, None),
        ("b", 0, "infra_failure", "0:53"),
        ("b", 1, "infra_failure", "NodeDown"),
        ("b", 2, None, None),
        ("b", 3, None, None),
        ("b", 4, None, None),  # an attempt that never started has no duration
    ]
    assert durations["duration_s"].to_list() == [1000] * 6 + [9999 - 8010]
    assert durations.select("user", "account", "gpu_count", "nodes").unique().rows() == [("ana", "acc", 16, 2)]
    assert durations["submit_s"].to_list() == [0, 1010, 0, 1010, 3010, 5010, 7010]
    assert find_marked(runs, rules) == [0, 2, 3]
    assert add_infra_failure(runs, {})["infra_failure"].null_count() == runs.height, "a proxy cannot tell"
    # Any configured state counts.
    by_timeout = infra_durations(trace_jobs, runs, {"states": ["TIMEOUT"]})
    assert by_timeout.filter(pl.col("event").is_not_null())["cause"].to_list() == ["TIMEOUT"]


def test_without_any_rule_every_failure_counts_as_a_proxy():
    data = jobs(("a", "failure", "Failed"), ("b", "failure", "TIMEOUT"), ("c", "cancelled", "x"), ("d", "waiting", "w"))
    durations = infra_durations(data, None, {})
    assert durations.select("unit_id", "event", "cause", "basis", "state").rows() == [
        ("a", "infra_failure", None, "proxy", "Failed"),
        ("b", None, None, "proxy", "TIMEOUT"),
        ("c", None, None, "proxy", "x"),
    ]
    job_durations = durations_of_jobs(data)
    assert durations.select(*DURATION_COLUMNS).drop("event").equals(job_durations.drop("event"))
    assert infra_durations(data, None, DEFAULTS | {"states": []})["basis"].unique().to_list() == ["proxy"]


def test_the_log_attributes_no_proxy_failure_to_infrastructure(tmp_path):
    trace_jobs = jobs(("a", "failure", "Failed"), ("b", "failure", "NODE_FAIL"), ("c", "success", "COMPLETED"))
    trace_jobs.write_parquet(tmp_path / "jobs.parquet")
    snakemake = SimpleNamespace(
        input={"jobs": str(tmp_path / "jobs.parquet")},
        output=SimpleNamespace(durations=str(tmp_path / "durations.parquet")),
        params=SimpleNamespace(rules={}, block_days=7),
        log=[str(tmp_path / "log")],
        rule="derive_infra_durations",
        wildcards=SimpleNamespace(trace="t"),
        threads=1,
    )
    runpy.run_path(str(ROOT / "scripts" / "derive_infra_durations.py"), init_globals={"snakemake": snakemake})
    assert (tmp_path / "log").read_text().endswith("2 failures of any cause (no cause is recorded)\n")


def test_attempts_without_outcomes_are_censored_and_the_last_has_the_jobs_status():
    trace_jobs = jobs(("a", "failure", "Failed"))
    runs = attempts(("a", 0, None, None), ("a", 1, None, "failure")).drop("state")
    durations = infra_durations(trace_jobs, runs, {})
    assert durations.select("event", "state").rows() == [(None, None), ("infra_failure", "Failed")]


@pytest.mark.parametrize("key", ["exit_codes", "reasons"])
def test_a_rule_on_a_column_missing_from_the_trace_is_an_error(key):
    with pytest.raises(StudyError, match=rf"^infra_failures\.{key} is set, but the trace has no"):
        infra_durations(jobs(("a", "failure", "x")), None, {key: ["1"]})
    with pytest.raises(StudyError, match="does not record the nodes"):
        infra_durations(jobs(("a", "failure", "x")), None, {}, events())


# --- health events


@pytest.mark.parametrize(
    ("offset", "failures"), [(-BEFORE_S - 1, 0), (-BEFORE_S, 1), (0, 1), (AFTER_S, 1), (AFTER_S + 1, 0)]
)
def test_the_window_includes_its_edges(offset, failures):
    assert (BEFORE_S, AFTER_S) == (600, 300)
    runs = attempts(("a", 0, "FAILED", "failure"))
    checks = events(("n2", 1010 + offset, "XID79", "high"))
    durations = infra_durations(jobs(("a", "failure", "FAILED")), runs, DEFAULTS, checks)
    assert durations["event"].count() == failures
    assert durations["cause"].to_list() == ["XID79" if failures else None]
    assert durations["basis"].to_list() == ["event"]


def test_health_events_explain_failures_but_not_time_limits_or_successes():
    at_end = [("n1", 1010, "IB", "low"), ("n1", 3010, "IB", "low")]
    trace_jobs = jobs(*((name, "failure", "x") for name in "abcde"))
    runs = attempts(
        ("a", 0, "NODE_FAIL", "failure", {"node_list": ["n9"]}),  # counts without an event
        ("b", 0, "NODE_FAIL", "failure"),
        ("c", 0, "TIMEOUT", "failure"),
        ("d", 0, "COMPLETED", "success"),
        ("e", 0, None, None),
        ("e", 1, "CANCELLED", "cancelled"),
    )
    durations = infra_durations(trace_jobs, runs, DEFAULTS, events(*at_end))
    assert durations["cause"].to_list() == ["NODE_FAIL", "IB", None, None, "IB", None]
    assert find_marked(runs, DEFAULTS, events(*at_end)) == [0, 1, 4]
    high = DEFAULTS | {"events": {"severities": ["high"]}}
    assert infra_durations(trace_jobs, runs, high, events(*at_end))["cause"].to_list()[:2] == ["NODE_FAIL", "NODE_FAIL"]
    other_code = DEFAULTS | {"events": {"codes": ["XID79"]}}
    assert infra_durations(trace_jobs, runs, other_code, events(*at_end))["event"].count() == 2


def test_the_failed_node_is_the_one_in_the_trace_or_else_that_of_the_event():
    failed = [{"failed_node": name} for name in ("n2", "n9", None, None, None)]
    trace_jobs = jobs(*((name, "failure", "x") for name in "abcde"))
    states = ["NODE_FAIL", "NODE_FAIL", "NODE_FAIL", "FAILED", "TIMEOUT"]
    runs = attempts(
        *((name, 0, state, "failure", columns) for name, state, columns in zip("abcde", states, failed, strict=True))
    )
    runs = runs.with_columns(failed_node=pl.Series([columns["failed_node"] for columns in failed]))
    # Without a health log, the failed node must be one of the run's own nodes.
    assert infra_durations(trace_jobs, runs, DEFAULTS)["failed_node"].to_list() == ["n2", *[None] * 4]
    durations = infra_durations(trace_jobs, runs, DEFAULTS, events(("n1", 1000, "XID79", "high")))
    assert durations["cause"].to_list() == ["XID79"] * 4 + [None]
    assert durations["failed_node"].to_list() == ["n2", "n1", "n1", "n1", None]
    # The event on n1 did not end the run that failed on n2; it is the incident of the other runs.
    assert durations["incident"].to_list() == [0, 1, 1, 1, None]


def test_a_health_event_is_one_incident_of_the_run_that_ended_nearest_to_it():
    trace_jobs = jobs(*((name, "failure", "x") for name in "abc"))
    ends = [{"end_s": 1400, "node_list": ["n1"]}, {"end_s": 990, "node_list": ["n1", "n2"]}, {"node_list": ["n2"]}]
    runs = attempts(*((name, 0, "FAILED", "failure", columns) for name, columns in zip("abc", ends, strict=True)))
    durations = infra_durations(
        trace_jobs, runs, DEFAULTS, events(("n1", 1000, "ECC", None), ("n2", 1005, "PCIE", None))
    )
    assert durations["failed_node"].to_list() == ["n1", "n1", "n2"]
    assert durations["incident"].to_list() == [1, 1, 2]


def outages(*rows):
    """Make outages from rows of (node, start[, columns]); default: unplanned, with an observed start."""
    records = []
    for node, start, *columns in rows:
        defaults = {"trace": "t", "unit_id": node, "node": node, "start_s": start, "seen_until_s": start + 9000}
        records.append(defaults | {"planned": False, "counted": True, "records": 1} | (columns[0] if columns else {}))
    return OUTAGES.frame(records)


@pytest.mark.parametrize(
    ("rows", "node"),
    [
        ([("n1", 400)], "n1"),
        ([("n1", 1300)], "n1"),
        ([("n1", 399)], None),
        ([("n1", 1301)], None),
        ([("n3", 1000)], None),
        ([("n1", 1000, {"planned": True})], None),
        ([("n1", 1000, {"counted": False})], None),
        ([("n1", 1000), ("n2", 999)], "n2"),
        ([("n1", 999), ("n2", 999), ("n2", 1000)], None),
        ([("n1", 999, {"planned": True}), ("n2", 999)], "n2"),
    ],
)
def test_the_node_with_an_outage_near_the_end_of_a_run(rows, node):
    runs = pl.DataFrame({"run": [7], "end_s": [1000], "node_list": [["n1", "n2", "n1"]]})
    assert attribute_to_outages(runs, outages(*rows))["node"].to_list() == ([node] if node else [])


def test_an_outage_gives_the_node_if_neither_the_trace_nor_a_health_event_does():
    trace_jobs = jobs(*((name, "failure", "x") for name in "abcde"))
    ends = [{}, {}, {"end_s": 1100}, {"end_s": 5000, "failed_node": "n2"}, {}]
    states = ["NODE_FAIL", "FAILED", "NODE_FAIL", "NODE_FAIL", "NODE_FAIL"]
    runs = attempts(
        *((name, 0, state, "failure", columns) for name, state, columns in zip("abcde", states, ends, strict=True))
    ).with_columns(failed_node=pl.Series([columns.get("failed_node") for columns in ends]))
    node_outages = outages(("n1", 1090), ("n1", 5000))
    durations = infra_durations(trace_jobs, runs, DEFAULTS, None, node_outages)
    assert durations["basis"].unique().to_list() == ["state"]
    assert durations["event"].is_not_null().to_list() == [True, False, True, True, True]
    assert durations["failed_node"].to_list() == ["n1", None, "n1", "n2", "n1"]
    # An outage is one incident of the run that ended nearest to it.
    assert durations["incident"].to_list() == [2, None, 2, 3, 2]
    with_event = infra_durations(trace_jobs, runs, DEFAULTS, events(("n2", 1000, "XID79", "high")), node_outages)
    assert with_event["failed_node"].to_list() == ["n2", "n2", "n2", "n2", "n2"]
    assert infra_durations(trace_jobs, None, {}, None, node_outages)["failed_node"].null_count() == 5


MOMENT = st.integers(-3000, 3000)
NODE = st.sampled_from(["n1", "n2", "n3"])


@given(
    st.lists(st.tuples(MOMENT, st.lists(NODE, max_size=3)), max_size=6),
    st.lists(st.tuples(NODE, MOMENT, st.sampled_from("abc"), st.sampled_from(["high", "low", None])), max_size=12),
)
def test_attribution_matches_a_search_of_all_pairs(runs, checks):
    frame = pl.DataFrame(
        [(run, *row) for run, row in enumerate(runs)],
        schema={"run": pl.UInt32, "end_s": pl.Int64, "node_list": pl.List(pl.String)},
        orient="row",
    )
    rank = {"high": 0, "low": 1, None: 2}
    expected = []
    for run, (end, nodes) in enumerate(runs):
        candidates = [
            (rank[severity], time, code, index, node)
            for index, (node, time, code, severity) in enumerate(checks)
            if node in nodes and -600 <= time - end <= 300
        ]
        expected += [(run, *min(candidates)[2:], abs(min(candidates)[1] - end))] if candidates else []
    pairs = attribute_to_events(frame, events(*checks), ["high", "low"])
    assert pairs.select("run", "code", "place", "node", "apart_s").rows() == expected


def test_node_lists_as_text(tmp_path):
    runs = attempts(("a", 0, None, "failure")).with_columns(pl.col("node_list").list.join(",")).drop("state")
    trace_jobs = jobs(("a", "failure", "Failed"))
    assert infra_durations(trace_jobs, runs, {}, events(("n2", 1000, "ECC", None)))["cause"].to_list() == ["ECC"]
    # If a health log exists, a failure without an event is no proxy.
    assert infra_durations(trace_jobs, runs, {}, events(("n3", 1000, "ECC", None)))["event"].to_list() == [None]


# --- components


def test_components_keep_their_durations_and_columns():
    durations = pl.DataFrame(
        {"trace": ["t"] * 3, "unit_id": ["a", "b", "c"], "event": ["failure", "failure", None], "batch": list("xyz")},
    ).with_columns(dbe=pl.Series([True, False, True]), otb=pl.Series([True, None, True]))
    durations = add_blank_columns(durations, DURATION_COLUMNS)
    infra = infra_durations_of_components(durations, ["dbe", "otb"])
    assert infra.columns == [*INFRA_COLUMNS, "batch", "dbe", "otb"]
    assert infra.select("event", "cause", "basis").rows() == [
        ("infra_failure", "dbe,otb", "component"),
        ("infra_failure", None, "component"),
        (None, None, "component"),
    ]
    assert infra_durations_of_components(durations, [])["cause"].to_list() == [None] * 3


# --- the configuration


def test_the_entry_overrides_the_study_and_the_study_overrides_the_format():
    format_, study_rules = {"infra_failures": {"states": ["A"]}}, {"states": ["B"], "reasons": ["r"]}
    assert merge_infra_failures({}, {}, format_) == {"states": ["A"]}
    assert merge_infra_failures({}, study_rules, format_) == {"states": ["B"], "reasons": ["r"]}
    entry = {"infra_failures": {"states": []}}
    assert merge_infra_failures(entry, study_rules, format_) == {"states": [], "reasons": ["r"]}
    assert merge_infra_failures({}, {}, {}) == {}


def test_health_events_need_an_existing_file_and_a_format_with_attempts(tmp_path):
    file = tmp_path / "h.csv"
    entry = {"format": "sacct", "health_events": str(file)}
    with pytest.raises(ConfigError, match=r"^registry\.t\.health_events: .*there is no such file"):
        find_option_file("health_events", "t", entry, {"gives": "jobs", "attempts": True})
    file.touch()
    assert find_option_file("health_events", "t", entry, {"gives": "jobs", "attempts": True}) == str(file)
    with pytest.raises(ConfigError, match="the format openb does not record the nodes"):
        find_option_file("health_events", "t", entry | {"format": "openb"}, {"gives": "jobs"})
