"""Why a number is another than it was: the data, the program, its libraries or the configuration, by two manifests."""

import copy
import tomllib
from pathlib import Path

import pytest
from ttf.engine.provenance.manifest_graph import Manifest
from ttf.page.checks.changed_numbers import (
    CONFIGURATION,
    DATA,
    LIBRARIES,
    NOT_COMPUTING,
    PROGRAM,
    Results,
    because,
    moves,
    told_of_moves,
)

HERE = "results/slurm"
METRICS = f"{HERE}/metrics.json"


def job(rule, script, inputs, outputs, parameters, **code):
    code = {f"scripts/{script}.py": "1"} | {name.replace("__", "/") + ".py": digest for name, digest in code.items()}
    about = {"rule": rule, "wildcards": {}, "script": f"scripts/{script}.py"}
    return about | {"inputs": inputs, "outputs": outputs, "parameters": parameters, "code": code}


def manifest():
    """Two rooms, outcomes of one dump of jobs and outages of one of events, and the job that sums their numbers up."""
    numbers = {f"scripts__ttf__analyses__{room}__numbers": "1" for room in ("outcomes", "outages")}
    jobs = {
        "ingest": job("ingest", "ingest", {"data/jobs.txt": "j"}, [f"{HERE}/jobs.parquet"], {"parts": ["jobs.txt"]}),
        "events": job("events", "ingest", {"data/events.txt": "e"}, [f"{HERE}/outages.parquet"], {}),
        "outcomes": job(
            *("outcomes", "compute", {f"{HERE}/jobs.parquet": "p"}, [f"{HERE}/tables/outcomes.csv"]),
            *({"settings": {"limit": 1}},),
            scripts__ttf__stats__shares="1",
        ),
        "outages": job(
            *("outages", "compute", {f"{HERE}/outages.parquet": "q"}, [f"{HERE}/tables/outages.csv"]),
            *({"settings": {}},),
        ),
        "summarise": job(
            *("summarise", "summarise", {f"{HERE}/tables/{room}.csv": "t" for room in ("outcomes", "outages")}),
            *([METRICS], {"analyses": ["outcomes", "outages"], "about": {}}),
            **numbers,
        ),
    }
    code = {name: {"sha256": digest, "size": 1} for of in jobs.values() for name, digest in of["code"].items()}
    code |= {"workflow/study/study.py": {"sha256": "1", "size": 1}, "config/taxonomy.yaml": {"sha256": "1", "size": 1}}
    made = {output: {"sha256": "1", "size": 1, "job": name} for name, of in jobs.items() for output in of["outputs"]}
    raw = {name: {"sha256": "1", "size": 1} for name in ("data/jobs.txt", "data/events.txt")}
    facts = {"version": "0.1.0", "git": {"revision": "a" * 40}, "python": "3.11.7", "packages": {"polars": "2.0"}}
    return Manifest(facts | {"jobs": jobs, "products": made, "raw": raw, "code": code})


def number(value, source="tables/outcomes.csv", unit="share"):
    return {"value": value, "unit": unit, "n": 10, "source": source}


THEN = {
    "outcomes.failure_share": number(0.3),
    "outcomes.failure_share_low": number(0.2),
    "outcomes.failure_share_high": number(0.4),
    "outages.outages": number(5, "tables/outages.csv", "outages"),
    "outcomes.most": number("FAILED", unit="label"),
    "outcomes.same": number(1),
}
NOW = THEN | {
    "outcomes.failure_share": number(0.31),
    "outages.outages": number(6, "tables/outages.csv", "outages"),
    "outcomes.most": number("TIMEOUT", unit="label"),
}
CONFIG = {"survival": {"max_steps": 1}, "study": ["slurm"]}


def results(metrics, change=lambda facts: None, config=CONFIG):
    facts = manifest()
    change(facts)
    return Results({"slurm": metrics}, {"slurm": METRICS}, facts, config)


def causes(change, config=CONFIG):
    """Of the share of failures and of the outages, once now's manifest is changed so."""
    found = {move.key: move.causes for move in moves(results(THEN), results(NOW, change, config))}
    assert list(found) == ["outcomes.failure_share", "outages.outages", "outcomes.most"]
    assert found["outcomes.most"] == found["outcomes.failure_share"]
    return set(found["outcomes.failure_share"]), set(found["outages.outages"])


def new_dump(facts):
    facts["jobs"]["ingest"]["inputs"]["data/week2.txt"] = "k"
    facts["raw"]["data/week2.txt"] = {"sha256": "k", "size": 1}
    facts["jobs"]["ingest"]["parameters"]["parts"].append("week2.txt")


def new_shares(facts):
    facts["jobs"]["outcomes"]["code"]["scripts/ttf/stats/shares.py"] = "2"


def new_numbers(facts):
    facts["jobs"]["summarise"]["code"]["scripts/ttf/analyses/section/outcomes/numbers.py"] = "2"


def new_polars(facts):
    facts["packages"]["polars"] = "2.1"


def new_altair(facts):
    facts["packages"]["altair"] = "7"


def new_limit(facts):
    facts["jobs"]["outcomes"]["parameters"]["settings"]["limit"] = 2


def new_default(facts):
    """The configuration is the same, and the program has another default."""
    new_limit(facts)
    facts["code"]["workflow/study/study.py"] = {"sha256": "2", "size": 1}


def both(*changes):
    return lambda facts: [change(facts) for change in changes]


@pytest.mark.parametrize(
    ("change", "of_outcomes", "of_outages"),
    [
        (new_dump, {DATA}, {DATA}),
        (new_shares, {PROGRAM}, {PROGRAM}),
        (new_numbers, {PROGRAM}, {PROGRAM}),
        (new_polars, {LIBRARIES}, {LIBRARIES}),
        (new_default, {PROGRAM}, {PROGRAM}),
        (both(new_dump, new_shares), {DATA, PROGRAM}, {DATA, PROGRAM}),
        # Neither has a part in a number.
        (new_altair, set(), set()),
        (lambda facts: None, set(), set()),
    ],
)
def test_where_one_thing_differs_that_is_why(change, of_outcomes, of_outages):
    """Outages do not come from what changed: as they moved all the same, all that their file is made of counts."""
    assert causes(change) == (of_outcomes, of_outages)


def test_each_number_has_the_causes_that_lie_behind_its_own_table():
    def change(facts):
        new_dump(facts)
        facts["jobs"]["events"]["code"]["scripts/ingest.py"] = "2"

    assert causes(change) == ({DATA}, {PROGRAM})


def test_what_a_person_set_is_the_configuration():
    other = CONFIG | {"survival": {"max_steps": 2}}
    assert causes(new_limit, other)[0] == {CONFIGURATION}
    # Only where it reaches the number.
    assert causes(new_dump, other)[0] == {DATA, CONFIGURATION}
    assert causes(both(new_dump, lambda facts: facts["jobs"]["ingest"]["parameters"]["parts"].pop()), other)[0] == {
        DATA
    }
    # A key that only the newer program knows says nothing of the person; one of the same program does.
    assert causes(new_default, CONFIG | {"new": 1})[0] == {PROGRAM}
    assert causes(new_limit, CONFIG | {"new": 1})[0] == {CONFIGURATION}


def test_a_sample_that_is_made_otherwise_is_other_data():
    def change(facts):
        facts["jobs"]["make"] = job("make", "make", {}, ["data/jobs.txt"], {"tasks": 2})
        facts["jobs"]["ingest"]["inputs"]["data/jobs.txt"] = "k"

    assert causes(change, CONFIG | {"registry": {"slurm": {"tasks": 2}}})[0] == {DATA}


def test_a_folder_that_was_moved_holds_the_same_data():
    def change(facts):
        facts["jobs"]["ingest"]["inputs"] = {"elsewhere/jobs.txt": "j"}

    assert causes(change)[0] == set()


def test_an_interval_that_moved_moves_its_number_and_no_number_moves_by_n():
    for_low = THEN | {"outcomes.failure_share_low": number(0.25)}
    assert [move.key for move in moves(results(THEN), results(for_low))] == ["outcomes.failure_share"]
    alone = {"retries.ci_low": number(0.2), "retries.jobs": number(3, unit="jobs")}
    moved = alone | {"retries.ci_low": number(0.1), "retries.jobs": alone["retries.jobs"] | {"n": 11}}
    assert [move.key for move in moves(results(alone), results(moved))] == ["retries.ci_low"]


def test_without_a_manifest_texts_are_left_out_and_nothing_is_attributed():
    then = Results({"slurm": THEN})
    found = moves(then, results(NOW))
    assert [(move.key, move.causes) for move in found] == [("outcomes.failure_share", None), ("outages.outages", None)]
    assert because(None, then, results(NOW)).startswith("for an unknown reason: ")


def test_the_words():
    def say(*causes, now=lambda facts: None):
        return because(frozenset(causes), results(THEN), results(NOW, now))

    assert say(DATA) == "because the data changed"
    assert say(PROGRAM, now=lambda facts: facts.update(version="1.0.0")) == (
        "because the program changed (0.1.0 → 1.0.0)"
    )
    other = {"git": {"revision": "b" * 40}}
    assert say(PROGRAM, now=lambda facts: facts.update(other)) == (
        "because the program changed (commit aaaaaaaaaaaa → bbbbbbbbbbbb)"
    )
    # Of a manifest that an older version wrote.
    assert say(PROGRAM, now=lambda facts: facts.pop("version")) == "because the program changed"
    assert say(PROGRAM, LIBRARIES, now=both(new_polars, lambda facts: facts["packages"].update(scipy="1"))) == (
        "because the program changed and libraries changed (polars 2.0 → 2.1, scipy none → 1)"
    )
    assert say(CONFIGURATION) == "because the configuration changed"
    assert say(DATA, PROGRAM) == (
        "because the program changed and the data changed; to separate the causes, run the old data with the new "
        "program and configuration"
    )
    assert say() == "although data, program, libraries and configuration are the same in both manifests"


def test_the_list_has_each_number_under_its_cause_and_counts_the_rest():
    now = NOW | {"new": number(1), "\x1b[2J": number(2)}
    then = {key: about for key, about in THEN.items() if key != "outcomes.most"} | {"\x1b[2J": number(1)}
    assert list(told_of_moves(results(then), results(now, new_dump))) == [
        "3 numbers moved because the data changed:",
        "  slurm: outcomes.failure_share: 31.0% (CI 20.0–40.0%, if independent; n = 10); "
        "was 30.0% (CI 20.0–40.0%, if independent; n = 10)",
        "  slurm: outages.outages: 6 outages (n = 10); was 5 outages (n = 10)",
        "  slurm: \\x1b[2J: 200.0% (n = 10); was 100.0% (n = 10)",
        "6 numbers compared, including interval bounds; 2 are new, 0 are gone.",
    ]


def test_a_trace_of_only_one_of_them_is_named():
    then = Results({"old": THEN}, {"old": METRICS}, manifest(), copy.deepcopy(CONFIG))
    assert list(told_of_moves(then, results(NOW)))[:2] == [
        "old: only in the earlier results.",
        "slurm: only in the study.",
    ]


def test_what_computes_nothing_is_among_the_dependencies():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    names = {line.split("=")[0].split(">")[0].split("[")[0] for line in project["dependencies"]}
    assert names >= NOT_COMPUTING
