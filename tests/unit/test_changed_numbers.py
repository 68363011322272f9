"""Two manifests attribute a changed number to data, program, libraries or configuration."""

import pytest
from ttf.engine.provenance.manifest_graph import Manifest
from ttf.page.checks.changed_numbers import (
    CONFIGURATION,
    DATA,
    LIBRARIES,
    PROGRAM,
    Results,
    describe_causes,
    find_moves,
    measure_change,
    report_moves,
)

DIR = "results/slurm"
METRICS = f"{DIR}/metrics.json"


def job(rule, script, inputs, outputs, parameters, **code):
    code = {f"scripts/{script}.py": "1"} | {name.replace("__", "/") + ".py": digest for name, digest in code.items()}
    facts = {"rule": rule, "wildcards": {}, "script": f"scripts/{script}.py"}
    return facts | {"inputs": inputs, "outputs": outputs, "parameters": parameters, "code": code}


def manifest():
    """Two analyses, outcomes of a job dump and outages of an event dump, and the job that summarises them."""
    jobs = {
        "ingest": job("ingest", "ingest", {"data/jobs.txt": "j"}, [f"{DIR}/jobs.parquet"], {"parts": ["jobs.txt"]}),
        "events": job("events", "ingest", {"data/events.txt": "e"}, [f"{DIR}/outages.parquet"], {}),
        "outcomes": job(
            "outcomes",
            "compute",
            {f"{DIR}/jobs.parquet": "p"},
            [f"{DIR}/tables/outcomes.csv"],
            {"settings": {"limit": 1}},
            scripts__ttf__stats__shares="1",
        ),
        "outages": job(
            "outages", "compute", {f"{DIR}/outages.parquet": "q"}, [f"{DIR}/tables/outages.csv"], {"settings": {}}
        ),
        "summarise": job(
            "summarise",
            "summarise",
            {f"{DIR}/tables/{analysis}.csv": "t" for analysis in ("outcomes", "outages")},
            [METRICS],
            {"analyses": ["outcomes", "outages"], "about": {}},
        ),
    }
    code = {name: {"sha256": digest, "size": 1} for job in jobs.values() for name, digest in job["code"].items()}
    code |= {
        "scripts/ttf/study/study.py": {"sha256": "1", "size": 1},
        "config/taxonomy.yaml": {"sha256": "1", "size": 1},
    }
    made = {output: {"sha256": "1", "size": 1, "job": name} for name, job in jobs.items() for output in job["outputs"]}
    raw = {name: {"sha256": "1", "size": 1} for name in ("data/jobs.txt", "data/events.txt")}
    versions = {"version": "0.1.0", "git": {"revision": "a" * 40}, "python": "3.11.7", "packages": {"polars": "2.0"}}
    return Manifest(versions | {"jobs": jobs, "products": made, "raw": raw, "code": code})


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


def causes(change, config=CONFIG):
    """Return the causes for the failure share and the outages after changing the new manifest."""
    causes_by_key = {move.key: move.causes for move in find_moves(results(OLD), results(NEW, change, config))}
    assert list(causes_by_key) == ["outcomes.failure_share", "outages.outages", "outcomes.most"]
    assert causes_by_key["outcomes.most"] == causes_by_key["outcomes.failure_share"]
    return set(causes_by_key["outcomes.failure_share"]), set(causes_by_key["outages.outages"])


def new_dump(facts):
    facts["jobs"]["ingest"]["inputs"]["data/week2.txt"] = "k"
    facts["raw"]["data/week2.txt"] = {"sha256": "k", "size": 1}
    facts["jobs"]["ingest"]["parameters"]["parts"].append("week2.txt")


def new_shares(facts):
    facts["jobs"]["outcomes"]["code"]["scripts/ttf/stats/shares.py"] = "2"


def new_polars(facts):
    facts["packages"]["polars"] = "2.1"


def new_altair(facts):
    facts["packages"]["altair"] = "7"


def new_limit(facts):
    facts["jobs"]["outcomes"]["parameters"]["settings"]["limit"] = 2


def new_default(facts):
    """The configuration is unchanged, but the program has another default."""
    new_limit(facts)
    facts["code"]["scripts/ttf/study/study.py"] = {"sha256": "2", "size": 1}


def combine(*changes):
    return lambda facts: [change(facts) for change in changes]


@pytest.mark.parametrize(
    ("change", "outcome_causes", "outage_causes"),
    [
        (new_dump, {DATA}, {DATA}),
        (new_shares, {PROGRAM}, {PROGRAM}),
        (new_polars, {LIBRARIES}, {LIBRARIES}),
        (new_default, {PROGRAM}, {PROGRAM}),
        (combine(new_dump, new_shares), {DATA, PROGRAM}, {DATA, PROGRAM}),
        # Neither affects a number.
        (new_altair, set(), set()),
        (lambda facts: None, set(), set()),
    ],
)
def test_a_single_difference_is_the_cause(change, outcome_causes, outage_causes):
    """Outages do not depend on the change. They moved nevertheless, so all inputs of their file count as causes."""
    assert causes(change) == (outcome_causes, outage_causes)


def test_each_number_has_the_causes_of_its_own_table():
    def change(facts):
        new_dump(facts)
        facts["jobs"]["events"]["code"]["scripts/ingest.py"] = "2"

    assert causes(change) == ({DATA}, {PROGRAM})


def test_a_setting_of_the_user_is_the_configuration():
    edited = CONFIG | {"survival": {"max_steps": 2}}
    assert causes(new_limit, edited)[0] == {CONFIGURATION}
    # Only if it reaches the number.
    assert causes(new_dump, edited)[0] == {DATA, CONFIGURATION}
    assert causes(combine(new_dump, lambda facts: facts["jobs"]["ingest"]["parameters"]["parts"].pop()), edited)[0] == {
        DATA
    }
    # A key that only the newer program knows is not the user's change; a key of the same program is.
    assert causes(new_default, CONFIG | {"new": 1})[0] == {PROGRAM}
    assert causes(new_limit, CONFIG | {"new": 1})[0] == {CONFIGURATION}


def test_a_sample_made_with_other_settings_is_other_data():
    def change(facts):
        facts["jobs"]["make"] = job("make", "make", {}, ["data/jobs.txt"], {"tasks": 2})
        facts["jobs"]["ingest"]["inputs"]["data/jobs.txt"] = "k"

    assert causes(change, CONFIG | {"registry": {"slurm": {"tasks": 2}}})[0] == {DATA}


def test_a_moved_folder_holds_the_same_data():
    def change(facts):
        facts["jobs"]["ingest"]["inputs"] = {"elsewhere/jobs.txt": "j"}

    assert causes(change)[0] == set()


def test_an_interval_moves_its_number_and_n_does_not():
    low_changed = OLD | {"outcomes.failure_share_low": number(0.25)}
    assert [move.key for move in find_moves(results(OLD), results(low_changed))] == ["outcomes.failure_share"]
    old_metrics = {"retries.ci_low": number(0.2), "retries.jobs": number(3, unit="jobs")}
    new_metrics = old_metrics | {"retries.ci_low": number(0.1), "retries.jobs": old_metrics["retries.jobs"] | {"n": 11}}
    assert [move.key for move in find_moves(results(old_metrics), results(new_metrics))] == ["retries.ci_low"]


def test_without_a_manifest_nothing_is_attributed():
    earlier = Results({"slurm": OLD})
    rows = find_moves(earlier, results(NEW))
    assert [(move.key, move.causes) for move in rows] == [("outcomes.failure_share", None), ("outages.outages", None)]
    assert describe_causes(None, earlier, results(NEW)).startswith("for an unknown reason: ")


def test_the_list_groups_numbers_by_cause_and_counts_the_rest():
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
