"""A registry entry that gives status words of a format another outcome."""

import pytest
from format_tables import FORMATS, derive_table, ingest_tables
from ttf.formats.format_declaration import load_outcomes, resolve_outcomes
from ttf.formats.sacct.read import READERS
from ttf.study.configuration.mapping import find_outcome_problems
from ttf.study.recognition.format_declarations import merge_outcomes, select_meaning

ENTRY = {"format": "sacct", "outcomes": {"success": ["TIMEOUT"], "failure": ["CANCELLED"]}}
DUMP = "JobIDRaw|User|State|Submit|Start|End|NodeList|AllocTRES\n" + "".join(
    f"{job}|ana|{state}|0|10|20|n1|cpu=1,node=1\n"
    for job, state in enumerate(("TIMEOUT", "CANCELLED by 7", "FAILED", "REQUEUED"), 1)
)


def test_changed_words_move_and_all_others_keep_their_outcome():
    outcomes = merge_outcomes(ENTRY, FORMATS["sacct"])
    assert "TIMEOUT" in outcomes["success"] and "TIMEOUT" not in outcomes["failure"]
    assert outcomes["failure"][-1] == "CANCELLED" and "FAILED" in outcomes["failure"]
    words = [word for words in outcomes.values() for word in words]
    assert sorted(words) == sorted(load_outcomes("sacct"))
    assert merge_outcomes({}, FORMATS["sacct"]) == FORMATS["sacct"]["outcomes"]
    assert merge_outcomes({"outcomes": {"failure": ["bad"]}}, FORMATS["table"]) == {"failure": ["bad"]}


@pytest.mark.parametrize(
    ("entry", "jobs", "attempts"),
    [
        ({}, ["failure", "cancelled", "failure", "running"], ["failure", "cancelled", "failure", "cancelled"]),
        (ENTRY, ["success", "failure", "failure", "running"], ["success", "failure", "failure", "cancelled"]),
    ],
)
def test_jobs_and_attempts_follow_the_entry(tmp_path, entry, jobs, attempts):
    raw, *_ = ingest_tables("sacct", tmp_path / "raw", readers=READERS, record=DUMP)
    assert derive_table("sacct", "jobs", raw, entry)["outcome"].to_list() == jobs
    assert derive_table("sacct", "attempts", raw, entry)["outcome"].to_list() == attempts


@pytest.mark.parametrize("name", [name for name, format in FORMATS.items() if format.get("outcomes")])
def test_every_format_with_words_lets_them_be_changed(name):
    """Formats with code resolve words by their meaning; the others read it from the mapping."""
    outcomes = FORMATS[name]["outcomes"]
    word = next(iter(outcomes["failure"]))
    entry = {"format": name, "outcomes": {"cancelled": [word]}}
    assert list(find_outcome_problems("mine", entry, FORMATS[name])) == []
    meaning = select_meaning(entry, FORMATS[name])
    assert word in meaning["outcomes"]["cancelled"] and word not in meaning["outcomes"]["failure"]
    if name in ("acme", "pai2020", "philly", "sacct"):
        assert resolve_outcomes(name, meaning)[word] == "cancelled"


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ({"failure": ["CANCELED"]}, "the format sacct has no status 'CANCELED'; did you mean CANCELLED?"),
        ({"failure": ["CANCELLED"], "success": ["CANCELLED"]}, "the word 'CANCELLED' is listed twice"),
        ({"failure": ["RUNNING"]}, "'RUNNING' is running; only what a job that has ended means can be changed."),
        ({"running": ["FAILED"]}, "'FAILED' is failure; only what a job that has ended means can be changed."),
    ],
)
def test_a_word_that_cannot_be_changed_is_refused(outcomes, message):
    problems = list(find_outcome_problems("mine", {"format": "sacct", "outcomes": outcomes}, FORMATS["sacct"]))
    assert problems[0].path[:3] == ("registry", "mine", "outcomes")
    assert problems[0].text.startswith(message)
