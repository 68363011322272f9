"""Published findings: their quantities on a trace of 14 rows, their verdicts, and errors of a claims file."""

from pathlib import Path

import polars as pl
import pytest
from memory_tables import correlations, outcome_table, runtime_by_group
from shipped_claims import CLAIMS
from tested_claims import ELSEWHERE, stands_elsewhere
from ttf.analyses.factors.correlate.compute import failure_share
from ttf.analyses.queue.describe_workload.workload import (
    RESOURCES,
    gpu_requests,
    percentiles,
    recurrence,
    request_against_use,
)
from ttf.page.replication.findings import read_claims
from ttf.page.replication.scorecard import NotComputable, compute_quantity, implied_counts, scorecard
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.study.configuration.claims import load_claims
from ttf.study.configuration.messages import ConfigError

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOT = ROOT / "tests/snapshots/claims_on_fourteen_rows.csv"

# (outcome, run time, GPU type, GPU request in %, cores, GiB, instances), with each type and request of a claim.
MICRO = [
    ("success", 100, "T4", 10, 1, 1, 1),
    ("success", 200, "T4", 25, 2, 2, 2),
    ("success", 300, "MISC", 50, 3, 3, 3),
    ("success", 400, "P100", 100, 4, 4, 4),
    ("success", 900, "V100", 200, 5, 5, 5),
    ("success", 700, "V100M32", 800, 6, 6, 6),  # 48 GPUs
    ("failure", 50, "T4", 10, 1, 1, 1),
    ("failure", 20, "MISC", 25, 2, 2, 2),
    ("failure", 60, "P100", 50, 3, 3, 3),
    ("failure", 40, "V100", 100, 4, 4, 6),
    ("failure", 30, "V100M32", None, 5, 5, 5),
    ("cancelled", 10, "T4", 100, 1, 1, 1),
    ("running", None, "T4", 100, 1, 1, 1),
    ("waiting", None, None, None, 1, 1, 1),
]


def micro_jobs() -> pl.DataFrame:
    names = ("outcome", "runtime_s", "gpu_type", "gpu_milli", "cpu_milli", "mem_mib", "size")
    frame = pl.DataFrame(MICRO, schema={name: JOB_COLUMNS[name] for name in names}, orient="row")
    units = {"gpu_milli": pl.col("gpu_milli") * 10, "cpu_milli": pl.col("cpu_milli") * 1000}
    frame = frame.with_columns(**units, mem_mib=pl.col("mem_mib") * 1024, start_s=0, trace_end_s=1000)
    extra = {
        "queue_s": pl.int_range(pl.len()) * 7,  # 0, 7, 14 ... in the order of MICRO
        "wall_s": pl.col("runtime_s") + 5,
        # Jobs use half of their request; the first uses all of it, the second twice as much.
        **{
            use: pl.when(pl.int_range(pl.len()) == 0)
            .then(pl.col(request))
            .when(pl.int_range(pl.len()) == 1)
            .then(pl.col(request) * 2)
            .otherwise(pl.col(request) // 2)
            for request, use in RESOURCES.values()
        },
        "recurrence_group": pl.Series(["a"] * 6 + ["b"] * 4 + ["c"] * 4),
    }
    return conform(frame, JOB_COLUMNS).with_columns(**extra)


def micro_tables() -> dict[str, pl.DataFrame]:
    jobs = micro_jobs()
    durations = pl.DataFrame(
        {
            "duration_s": [31_536_000] * 12,
            "event": ["failure"] * 3 + [None] * 9,
            "gpu_milli": [1000] * 12,
            "nodes": [1] * 12,
        },
        schema_overrides={"gpu_milli": pl.Int64, "nodes": pl.Int64},
    )
    account = [
        (name, 14 + i) for i, name in enumerate(("job", "task", "instance", "sensor", "group_tag", "machine_spec"))
    ]
    return {
        "row_account": pl.DataFrame(account, schema=["table", "rows_read"], orient="row"),
        "outcomes": outcome_table(jobs),
        "outcomes_gpu": outcome_table(jobs.filter(pl.col("gpu_milli") > 0)),
        "failure_share": failure_share(jobs),
        "runtime_by_group": runtime_by_group(jobs, [None]),
        "correlations": correlations(jobs, [None]),
        "percentiles": percentiles(jobs),
        "gpu_requests": gpu_requests(jobs),
        "request_use": request_against_use(jobs),
        "recurrence": recurrence(jobs),
        "mttf": mean_time_to_failure(durations, "failure", ["all"]),
    }


TABLES = micro_tables()
COMPUTABLE = [claim for claim in CLAIMS if "quantity" in claim and not stands_elsewhere(claim["id"])]


def test_the_quantities_of_claims_on_a_trace_of_a_dozen_rows_are_those_of_the_snapshot():
    """Each can be counted in MICRO by hand; a new claim needs a line in tests/snapshots, read with care."""
    micro_claims = [claim | {"of": "micro"} for claim in COMPUTABLE]
    computed = dict(
        scorecard(micro_claims, {"micro": ["micro"]}, lambda _, name: TABLES[name]).select("id", "computed").iter_rows()
    )
    assert computed == pytest.approx(dict(pl.read_csv(SNAPSHOT).iter_rows()), rel=1e-9)


def test_every_claim_is_computed_in_a_test_or_states_what_is_missing():
    assert all(("missing" in claim) + (claim in COMPUTABLE) + stands_elsewhere(claim["id"]) for claim in CLAIMS)
    assert all((ROOT / "tests/unit" / file).is_file() for file in ELSEWHERE.values())


# Verdicts ---------------------------------------------------------------------------------------------------


def claim(**changes):
    defaults = {
        "id": "a",
        "of": "mine",
        "source": "x",
        "statement": "y",
        "published": 10.0,
        "unit": "jobs",
        "evidence": "printed",
        "quantity": {"table": "t", "where": {"k": "one"}, "column": "v"},
        "tolerance": 0.1,
        "why": "printed so",
    }
    return {key: value for key, value in (defaults | changes).items() if value is not None}


TABLE = pl.DataFrame(
    {
        "k": ["one", "two", None, "four"],
        "v": [10.05, 3.0, 7.0, None],
        "n": [5, 6, 7, 0],
        "reason": [None] * 3 + ["too few"],
    }
)


def score_claim(study=("mine",), table=TABLE, **changes):
    (row,) = scorecard([claim(**changes)], {name: [name] for name in study}, lambda trace, name: table).iter_rows(
        named=True
    )
    return row


def test_a_difference_at_the_tolerance_is_reproduced():
    row = score_claim()
    assert (row["verdict"], row["computed"], row["n"], row["note"]) == ("reproduced", 10.05, 5, "printed so")
    assert score_claim(published=9.95)["verdict"] == "reproduced"  # 10.05 - 9.95 is above 0.1 by a rounding
    assert score_claim(published=9.9499)["verdict"] == "differs"


@pytest.mark.parametrize(
    ("changes", "verdict", "note"),
    [
        ({}, "differs", "by −1.95; tolerance 0.1: printed so"),
        ({"suspect": "a slip"}, "suspect in the source", "a slip; what was computed differs by −1.95"),
        ({"study": ["another"]}, "not run", "mine is not in this study"),
    ],
)
def test_a_larger_difference_has_its_verdict_and_the_amount(changes, verdict, note):
    row = score_claim(published=12.0, **changes)
    assert row["verdict"] == verdict and row["note"].startswith(note)
    assert (row["computed"] is None) == (verdict == "not run")


def test_tables_of_several_traces_are_pooled_if_all_are_in_the_study():
    pooled = {"table": "t", "also": ["b", "c"], "column": "v", "where": {"k": "one"}, "aggregate": "sum"}
    row = score_claim(study=["mine", "b", "c"], quantity=pooled, published=30.15)
    assert (row["verdict"], row["computed"], row["n"]) == ("reproduced", pytest.approx(30.15), 15)
    row = score_claim(study=["mine", "b"], quantity=pooled)
    assert (row["verdict"], row["note"]) == ("not run", "c is not in this study")
    assert score_claim(study=[], quantity=pooled)["note"] == "mine, b, c are not in this study"
    assert score_claim(study=["mine", "b", "c"], quantity=pooled, table=None)["note"] == "mine, b, c have no table t"


@pytest.mark.parametrize(
    ("bound", "published", "verdict"),
    [("above", 10, "reproduced"), ("above", 10.05, "differs"), ("below", 10, "differs"), ("below", 11, "reproduced")],
)
def test_a_bound_is_met_or_not(bound, published, verdict):
    assert score_claim(bound=bound, published=published, tolerance=0)["verdict"] == verdict


def test_printed_numbers_need_no_trace():
    row = score_claim(study=[], quantity={"arithmetic": {"parts": [0.1, 0.2], "whole": 3}}, published=0.1, tolerance=0)
    assert (row["verdict"], row["computed"]) == ("reproduced", 0.1)
    plan = {
        "form": "v1",
        "gpus": 9,  # two nodes
        "failures_per_1000_node_days": 500,
        "checkpoint_interval_s": 7200,
        "checkpoint_write_s": 0,
        "restart_s": 0,
        "queue_s": 0,
        "productive_s": 864_000,
    }
    # A failure a day; an hour of 24 is lost.
    assert score_claim(quantity={"ettr": plan}, published=23 / 24, tolerance=1e-12)["verdict"] == "reproduced"
    lost = score_claim(quantity={"ettr": plan | {"restart_s": 90_000}})
    assert lost["verdict"] == "not computable"


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"missing": "no logs", "quantity": None, "tolerance": None, "why": None}, "no logs"),
        ({"quantity": {"table": "t", "where": {"k": "ten"}, "column": "v"}}, "the trace has no such row"),
        ({"quantity": {"table": "t", "column": "v"}}, "4 rows of the table match, and one is wanted"),
        ({"quantity": {"table": "t", "where": {"k": "four"}, "column": "v"}}, "too few"),
        ({"quantity": {"table": "t", "where": {"k": "one"}, "column": "w"}}, "the table has no column w"),
    ],
)
def test_a_quantity_that_cannot_be_computed_states_the_reason(changes, note):
    row = score_claim(**changes)
    assert (row["verdict"], row["computed"], row["note"]) == ("not computable", None, note)


def test_quantities_of_several_rows():
    assert compute_quantity(TABLE, {"column": "v", "aggregate": "sum"}) == (20.05, 18)
    assert compute_quantity(TABLE, {"column": "v", "where": {"k": ["one", "two"]}, "aggregate": "min"}) == (3.0, None)
    assert compute_quantity(TABLE, {"column": "v", "where": {"k": None}})[0] == 7.0
    assert compute_quantity(TABLE, {"column": "n", "where": {"k": "one"}, "of": {"k": ["one", "two"]}}) == (5 / 11, 11)
    assert compute_quantity(TABLE, {"column": "v", "where": {"k": "two"}, "over": "n"}) == (0.5, 6)
    with pytest.raises(NotComputable, match="nothing that it could be a share of"):
        compute_quantity(TABLE, {"column": "n", "where": {"k": "one"}, "of": {"k": "four"}})


# The numbers of points -------------------------------------------------------------------------------------


def make_pair(name, r, p):
    return claim(id=name, printed={"r": r, "p": p})


def test_pairs_that_agree_differ_are_pasted_malformed_or_impossible():
    pairs = [("fits", "0.44", "2.01e-02"), ("off", "0.64", "4.51e-07"), ("bad", "-0.09", "3.19e-0.1")]
    pairs += [("once", "0.04", "4.50e-01"), ("again", "0.04", "4.50e-01"), ("never", "0.99", "9.00e-01")]
    table = pl.DataFrame({"k": ["one"], "v": [0.44], "n": [27]})
    counts = implied_counts([make_pair(*numbers) for numbers in pairs], {"mine": ["mine"]}, lambda *_: table)
    verdicts = dict(counts.select("id", "verdict").iter_rows())
    assert verdicts == {
        "fits": "agrees",
        "off": "differs",
        "bad": "malformed",
        "once": "identical",
        "again": "identical",
        "never": "impossible",
    }
    assert set(counts["n_in_data"]) == {27}
    assert implied_counts([make_pair("a", "0.44", "2.01e-02")], {}, lambda *_: None)["verdict"].to_list() == ["not run"]


# The trace that a claim is of ----------------------------------------------------------------------------------------


def score_rows(study, **changes):
    frame = scorecard([claim(of="pai2020", **changes)], study, lambda *_: TABLE)
    return [(row["trace"], row["verdict"], row["computed"]) for row in frame.iter_rows(named=True)]


def test_a_finding_belongs_to_every_trace_of_its_data_set():
    study = {"sample": ["sample", "pai2020"], "part": ["part", "pai2020"], "other": ["other", "sacct"]}
    assert score_rows(study) == [("sample", "reproduced", 10.05), ("part", "reproduced", 10.05)]
    assert score_rows({"other": ["other", "sacct"]}) == [("pai2020", "not run", None)]
    assert score_rows(study, quantity=None, missing="data") == [(name, "not computable", None) for name in study][:2]


def test_a_finding_of_another_cluster_has_no_verdict_beside_a_trace_of_its_format():
    study = {"other": ["other", "sacct"]}
    assert score_rows(study, beside=["sacct"]) == [("other", "another cluster", 10.05)]
    arithmetic = {"arithmetic": {"parts": [4, 6]}}
    assert score_rows(study, beside=["sacct"], quantity=arithmetic) == [("other", "reproduced", 10.0)]
    assert score_rows(study | {"mine": ["mine", "pai2020"]}, beside=["sacct"]) == [("mine", "reproduced", 10.05)]


def test_a_document_of_claims_gives_each_its_source():
    sources = {"x": "A paper", "y": {"title": "Another", "year": 2025, "beside": ["sacct"]}}
    claims = read_claims([{"sources": sources, "claims": [claim(), claim(source="y")]}])
    keys = ("source_key", "source", "year", "beside")
    assert [[row[key] for key in keys] for row in claims] == [
        ["x", "A paper", None, []],
        ["y", "Another", 2025, ["sacct"]],
    ]


# The file --------------------------------------------------------------------------------------------------

VALID_FILE = """
sources: {x: A paper}
claims:
  - {id: a, of: mine, source: x, statement: s, published: 1, evidence: printed, missing: data}
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("source: x", "source: z"), r"claims\.a\.source: z is not under sources: x\."),
        (
            ("missing: data", "missing: data, colour: red"),
            r"claims\.a\.colour: there is no such key\. Allowed here: id, ",
        ),
        ((", missing: data", ""), r"claims\.a: needs quantity and tolerance and why, or missing: exactly one of them"),
        (
            ("missing: data}", "missing: data}" + VALID_FILE.splitlines()[-1].join("\n\n")),
            r"claims\.a\.id: occurs 2 times",
        ),
    ],
)
def test_an_error_of_a_claims_file_names_the_claim(tmp_path, change, message):
    file = tmp_path / "claims.yaml"
    file.write_text(VALID_FILE)
    assert len(load_claims(file)["claims"]) == 1
    file.write_text(VALID_FILE.replace(*change))
    with pytest.raises(ConfigError, match=message):
        load_claims(file, "claims.yaml")
