"""Two manifests attribute a changed number to data, program, libraries or configuration."""

import pytest
from ttf.engine.provenance.manifest_graph import Manifest
from ttf.page.checks.changed_numbers import (
    Results,
    describe_causes,
    find_moves,
    measure_change,
    report_moves,
)

DIR = "results/slurm"
METRICS = f"{DIR}/metrics.json"


def manifest():
    code = {"scripts/ttf/stats/shares.py": {"sha256": "1", "size": 1}}
    raw = {name: {"sha256": name[-5], "size": 1} for name in ("data/jobs.txt", "data/events.txt")}
    versions = {"version": "0.1.0", "git": {"revision": "a" * 40}, "python": "3.11.7", "packages": {"polars": "2.0"}}
    return Manifest(versions | {"jobs": {}, "products": {}, "raw": raw, "code": code})


def number(value, source="tables/outcomes.csv", unit="share"):
    return {"value": value, "unit": unit, "n": 10, "source": source}


OLD = {
    "outcomes.failure_share": number(0.3),
    "outcomes.failure_share_low": number(0.2),
    "outcomes.failure_share_high": number(0.4),
    "outages.outages": number(5, "tables/outages.csv", "outages"),
    "outcomes.most": number("FAILED", unit="label"),
    "outcomes.same": number(1),
}
NEW = OLD | {
    "outcomes.failure_share": number(0.31),
    "outages.outages": number(6, "tables/outages.csv", "outages"),
    "outcomes.most": number("TIMEOUT", unit="label"),
}
CONFIG = {"survival": {"max_steps": 1}, "study": ["slurm"]}


def results(metrics, change=lambda facts: None, config=CONFIG):
    facts = manifest()
    change(facts)
    return Results({"slurm": metrics}, {"slurm": METRICS}, facts, config)


def new_dump(facts):
    facts["raw"]["data/week2.txt"] = {"sha256": "k", "size": 1}


def new_program(facts):
    facts["code"]["scripts/ttf/stats/shares.py"] = {"sha256": "2", "size": 1}
    facts["version"] = "1.0.0"


def new_polars(facts):
    facts["packages"]["polars"] = "2.1"


def new_altair(facts):
    facts["packages"]["altair"] = "7"


def moved_folder(facts):
    facts["raw"] = {name.replace("data", "elsewhere"): file for name, file in facts["raw"].items()}


def both(facts):
    new_dump(facts)
    new_program(facts)


NOTHING = "although data, program, libraries and configuration are the same in both manifests"
NEW_PROGRAM = "because the program changed (0.1.0 → 1.0.0)"
ADVICE = "; to separate the causes, run the old data with the new program and configuration"


@pytest.mark.parametrize(
    ("change", "added_configuration", "clause"),
    [
        (new_dump, {}, "because the data changed"),
        (new_program, {}, NEW_PROGRAM),
        (new_polars, {}, "because libraries changed (polars 2.0 → 2.1)"),
        (lambda facts: None, {"survival": {"max_steps": 2}}, "because the configuration changed"),
        (both, {}, f"{NEW_PROGRAM} and the data changed{ADVICE}"),
        # A key that only the newer program knows is not the user's change; a key of the same program is.
        (new_program, {"new": 1}, NEW_PROGRAM),
        (lambda facts: None, {"new": 1}, "because the configuration changed"),
        # None affects a number.
        (new_altair, {}, NOTHING),
        (moved_folder, {}, NOTHING),
        (lambda facts: None, {}, NOTHING),
    ],
)
def test_what_differs_between_the_manifests_is_the_cause(change, added_configuration, clause):
    assert describe_causes(results(OLD), results(NEW, change, CONFIG | added_configuration)) == clause


def test_an_interval_moves_its_number_and_n_does_not():
    low_changed = OLD | {"outcomes.failure_share_low": number(0.25)}
    assert [move.key for move in find_moves(results(OLD), results(low_changed))] == ["outcomes.failure_share"]
    old_metrics = {"retries.ci_low": number(0.2), "retries.jobs": number(3, unit="jobs")}
    new_metrics = old_metrics | {"retries.ci_low": number(0.1), "retries.jobs": old_metrics["retries.jobs"] | {"n": 11}}
    assert [move.key for move in find_moves(results(old_metrics), results(new_metrics))] == ["retries.ci_low"]


def test_without_a_manifest_nothing_is_attributed():
    earlier = Results({"slurm": OLD})
    assert [move.key for move in find_moves(earlier, results(NEW))] == ["outcomes.failure_share", "outages.outages"]
    assert describe_causes(earlier, results(NEW)).startswith("for an unknown reason: ")


def test_the_list_names_the_cause_and_counts_the_rest():
    new_metrics = NEW | {"new": number(1), "\x1b[2J": number(2)}
    old_metrics = {key: metric for key, metric in OLD.items() if key != "outcomes.most"} | {"\x1b[2J": number(1)}
    lines = list(report_moves(results(old_metrics), results(new_metrics, new_dump)))
    assert lines[2] == "3 numbers moved because the data changed:"
    assert lines[4] == "  slurm: outages.outages: 6 outages (n = 10); was 5 outages (n = 10)"
    assert lines[5].startswith("  slurm: \\x1b[2J: ")
    assert lines[6].endswith("2 are new, 0 are gone.")


def shares(group, value, low, high):
    bounds = {"low": low, "high": high} if high is not None else {"low": low}
    keys = {f"{group}.share": value} | {f"{group}.share_{end}": bound for end, bound in bounds.items()}
    return {key: number(value) for key, value in keys.items()}


def test_the_list_begins_with_the_ten_largest_changes_by_their_interval():
    """A change of .1 with margins of .03 and .04 towards each other is 2 margins."""
    old = shares("a", 0.5, 0.4, 0.53) | shares("wide", 0.1, 0.0, 0.4) | shares("copy", 0.5, 0.4, 0.53) | OLD
    new = shares("a", 0.6, 0.56, 0.9) | shares("wide", 0.3, 0.0, 0.9) | shares("copy", 0.6, 0.56, 0.9) | NEW
    sizes = {
        move.key: measure_change(move, results(old), results(new)) for move in find_moves(*map(results, (old, new)))
    }
    assert sizes["a.share"] == pytest.approx(2)
    assert sizes["wide.share"] == pytest.approx(0.2 / (0.3**2 + 0.3**2) ** 0.5)
    # A count and a text have no interval.
    assert sizes["outages.outages"] == sizes["outcomes.most"] == 0
    lines = list(report_moves(results(old), results(new)))
    assert lines[0] == "The largest 3 changes, in margins of error of both intervals:"
    # The same change under two keys is listed once.
    assert [line.split(": ")[:3] for line in lines[1:4]] == [
        ["  2.00", "slurm", "a.share"],
        ["  0.47", "slurm", "wide.share"],
        ["  0.07", "slurm", "outcomes.failure_share"],
    ]


def test_a_change_without_a_margin_is_not_ranked():
    for bounds in ((0.3, 0.3), (0.2, None)):
        old, new = shares("a", 0.3, *bounds), shares("a", 0.4, 0.4, 0.4)
        (move,) = find_moves(results(old), results(new))
        assert measure_change(move, results(old), results(new)) == 0
