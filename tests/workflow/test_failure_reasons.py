"""Reasons of failures from raw records, log tails and custom rules; reruns after an edit of the taxonomy."""

import json

import polars as pl
import pytest
from sacct_story import FIXTURES
from study_runs import Checkout, check_out
from ttf.analyses.causes.classify_failures import LOG_TAILS
from ttf.analyses.lost.measure_losses import WHAT_IF
from ttf.engine.storage.tables import read_table

OWN_TAXONOMY = """\
reasons:
  Time limit: {domain: [user program], deterministic: false}
rules:
- {reason: Killed, exit_code: ['3']}
- {reason: Semantic error, text: ['(?i)weird']}
"""
TAILS = [
    {"job_id": 12, "text": "weird"},
    {"job_id": 8, "attempt": 0, "text": "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."},
    {"job_id": 7, "text": "no rule"},
]
TARGETS = ["--", "results/mine/reasons.parquet", "results/mine/tables/what_if.csv"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Checkout, dict]:
    """Return a finished study of a real Slurm's accounting with log tails and custom rules; its configuration."""
    study = check_out(tmp_path_factory.mktemp("reasons") / "checkout")
    folder = study.folder / "raw"
    folder.mkdir()
    (folder / "one.txt").write_bytes((FIXTURES / "real_readme.txt").read_bytes().replace(b"NODE_FAIL", b"FAILED"))
    (study.folder / "tails.jsonl").write_text("".join(json.dumps(tail) + "\n" for tail in TAILS) + "not json\n")
    (study.folder / "own.yaml").write_text(OWN_TAXONOMY)
    entry = {"format": "sacct", "folder": "raw", "log_tails": "tails.jsonl"}
    config = {"study": ["mine"], "registry": {"mine": entry}, "taxonomy": "own.yaml"}
    study.snakemake(*TARGETS, one_process=True, **config)
    return study, config


def test_reasons_and_the_tables_derived_from_them(finished):
    study, _ = finished
    results = study.folder / "results/mine"
    reasons = pl.read_parquet(results / "reasons.parquet").select(
        "job_id", "attempt", "reason", "domain", "deterministic"
    )
    assert reasons.rows() == [
        ("2", 0, "Killed", "user program or system software", False),
        ("3", 0, "Time limit", "user program", False),
        ("7", 0, None, None, None),
        ("8", 0, "GPU unavailable", "system software or hardware", False),
        ("12", 0, "Semantic error", "user program", True),
    ]
    # One of the five failures is deterministic, and its job was not run again.
    no_retry = read_table(results / "tables/what_if.csv", WHAT_IF).filter(scenario="no_retry_of_deterministic")
    assert no_retry.select("n", "affected", "reason").rows() == [(1, 0, None)]
    lines = read_table(results / "tables/log_tails.csv", LOG_TAILS)
    assert lines.select("code", "rows", "first_lines").rows() == [("lines", 4, None), ("not_json", 1, "4")]


def test_an_edited_taxonomy_reruns_what_depends_on_it(finished):
    study, config = finished
    dependent_rules = {"classify_failures", "measure_losses"}
    (study.folder / "own.yaml").write_text("# Only a comment.\n" + OWN_TAXONOMY)
    assert study.planned(*TARGETS, **config) == set()
    for file in ("own.yaml", "config/taxonomy.yaml"):
        study.edit(file, "deterministic: false", "deterministic: true")
        assert study.planned(*TARGETS, **config) == dependent_rules, file
        study.edit(file, "deterministic: true", "deterministic: false")


def test_a_bad_taxonomy_stops_before_anything_runs(finished):
    study, config = finished
    (study.folder / "bad.yaml").write_text("rules:\n- reason: Killed\n  text: ['(a']\n")
    process = study.snakemake("--dry-run", check=False, **config | {"taxonomy": "bad.yaml"})
    assert process.returncode == 1
    message = "taxonomy: bad.yaml: line 3, column 10: rules[0].text[0]: '(a' cannot be searched for: unclosed group."
    assert message in process.stderr
    assert "Traceback" not in process.stderr
