"""The texts of the brief: their length, the metrics they name, the grade, the actions and the file."""

import re
from dataclasses import asdict

import pytest
from filled_texts import filled
from made_numbers import ABOUT, COMPONENTS, numbers, plain, proxy
from ttf.display.brief_model import WITHHELD
from ttf.display.phrases import list_keys, to_html
from ttf.display.statement_rules import list_withheld
from ttf.page.brief.actions import actions
from ttf.page.brief.bottom_line import bottom_line
from ttf.page.brief.brief import make_brief
from ttf.page.brief.facts import facts, subtitle
from ttf.page.brief.grade import grade_data
from ttf.page.brief.mini_charts import draw_mini
from ttf.page.brief.tiles import CANNOT, nodes_with_excess

actions, bottom_line, facts, subtitle, grade_data, nodes_with_excess = map(
    filled, (actions, bottom_line, facts, subtitle, grade_data, nodes_with_excess)
)

_ABSENT_KEYS = ("data", "outcomes", "lost_work", "failed_time", "actions", "ettr.by", "ettr.mttf", "taxonomy")
_COMPONENT_NUMBERS = {
    "sizes__basis": "component",
    "sizes__law__reason": ("one size only", "label"),
    "durations__units": (5006, "units"),
    "durations__durations": (28_329, "durations"),
    "durations__failures": (23_324, "failures"),
    "mttf__node_days": (4.88e6, "node days"),
    "mttf__mttf_s": (1.807e7, "s"),
    "mttf__ci_low_s": (1.784e7, "s"),
    "mttf__ci_high_s": (1.83e7, "s"),
    "mttf__events": (23_324, "failures"),
    "lemons__lemons": 136,
    "lemons__share_of_failures": (0.28, "share"),
    "survival__1y__survival": (0.2347, "share"),
    "free__1y__share": (0.488, "share"),
    "survival__events": (23_324, "failures"),
}
COMPONENT = numbers(*_ABSENT_KEYS, **_COMPONENT_NUMBERS)
TRACES = {
    "all": (numbers(), ABOUT),
    "proxy": (proxy(), ABOUT | {"unit": "pod"}),
    "few ended": (numbers(outcomes__ended_share=0.25, outcomes__unresolved_share=0.7), ABOUT),
    "mostly running": (numbers(outcomes__running__gpu_hours_share=(0.96, "share")), ABOUT),
    "projection": (numbers(sizes__largest_run__gpus=512), ABOUT),
    "components": (COMPONENT, COMPONENTS),
    "nothing failed": (numbers("outcomes.failure_share", sizes__rate__failures=0), ABOUT),
}


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            if name not in ("mini", "withheld"):
                yield from strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from strings(part)


def numbers_and_brief(name):
    m, trace_facts = TRACES[name]
    m = type(m)(m)
    return m, make_brief(m, {}, trace_facts, list_withheld(m))


@pytest.mark.parametrize("name", TRACES)
def test_every_number_is_in_the_metrics_and_none_is_withheld(name):
    m, brief = numbers_and_brief(name)
    named_keys = {key for text in strings(asdict(brief)) for key in list_keys(text)}
    assert named_keys and named_keys <= set(m)
    assert not named_keys & set(brief.withheld)


@pytest.mark.parametrize(
    ("changes", "grade", "reason"),
    [
        ({}, "A", None),
        ({"quality__quarantined_share": 0.02}, "B", "2.0% of rows quarantined"),
        ({"without_end__share": 0.06}, "B", "6.0% of failures without an end"),
        ({"without_end__share": 0.06, "taxonomy__unmatched_share": 0.39}, "C", "6.0% of failures without an end"),
        (
            {
                "quality__quarantined_share": 0.02,
                "without_end__share": 0.06,
                "taxonomy__unmatched_share": 0.39,
                "outcomes__unresolved_share": 0.75,
            },
            "D",
            "2.0% of rows quarantined",
        ),
    ],
)
def test_each_flaw_lowers_the_grade_by_one(changes, grade, reason):
    actual_grade, reasons = grade_data(numbers(**changes))
    assert (actual_grade, plain(reasons[0]) if reasons else None) == (grade, reason)


ERROR_CODES = {"node_errors.codes_preceding": 3, "node_errors.window_s": 300, "node_errors.lead_s": 3_600}
for _rank, _code in enumerate(("IB LINK", "XID 48", "XID 79"), start=1):
    ERROR_CODES |= {f"node_errors.code.{_rank}.code": _code, f"node_errors.code.{_rank}.component": "GPU"}
    ERROR_CODES |= {f"node_errors.code.{_rank}.{name}": 9 for name in ("failed", "attempts_hit", "expected")}
BAD_GROUP = {"group": "team b", "group_by": "account", "share": 0.3, "gpu_hours": 1e6, "failures": 90, "expected": 20.5}


def keyed_numbers(*without, **cells):
    """Return the made numbers with cells by key, each with a unit that its formatting accepts."""
    units = {str: "label", int: "failures", float: "share"}
    values = {key.replace(".", "__"): (value, units[type(value)]) for key, value in cells.items()}
    return numbers(*without, **values)


def test_every_action_has_a_row_or_a_name_and_every_code_is_named():
    m = keyed_numbers(**ERROR_CODES)
    for most in (5, 4, 2, 0):
        rows, others, *_ = actions(m, "job", most=most)
        assert len(rows) <= most and len(rows) + len(others) == 5
        texts = [row.title + row.evidence for row in rows] + list(others)
        assert any("IB LINK" in text for text in texts)
    (row,) = (row for row in actions(m, "job")[0] if "IB LINK" in row.title)
    assert all(code in row.evidence for code in ("XID 48", "XID 79"))
    assert row.effect == row.effect_note == "" and row.summary == row.title


@pytest.mark.parametrize(("hours", "is_action"), [(1e6, True), (1_000.0, False)])
def test_a_group_is_an_action_if_it_explains_more_than_a_checkpoint_saves(hours, is_action):
    m = keyed_numbers(**{f"actions.group.{name}": value for name, value in (BAD_GROUP | {"gpu_hours": hours}).items()})
    rows, others, rejected, _ = actions(m, "job")
    assert ("team b" in rows[0].title) == is_action
    assert is_action or "team b" not in str((rows, others, rejected))


def test_checkpoints_are_not_the_first_action_without_causes_and_long_runs():
    for runs in (0, 9, 10):
        m = proxy()
        m["ettr.measured.runs"] = {"value": runs, "unit": "runs", "n": None}
        rows, others, rejected, _ = actions(m, "job")
        named = [any("checkpoint" in text for text in texts) for texts in ([row.title for row in rows], others)]
        assert named == [runs >= 10, runs < 10] and not any("checkpoint" in text for text in rejected)


def test_draining_is_not_judged_without_power():
    _, _, rejected, _ = actions(numbers(lemons__detectable_ratio=140.0), "job")
    assert not any("draining" in text for text in rejected)
    tile = nodes_with_excess(numbers(lemons__detectable_ratio=140.0))
    assert tile.state == WITHHELD and tile.value == CANNOT and "169 failures are too few" in plain(tile.means)
    assert plain(nodes_with_excess(numbers()).means) == "No node has significantly more failures than expected."


def test_the_header_has_dates_only_if_the_clock_is_known():
    assert plain(subtitle(numbers(), ABOUT)) == "How reliably its jobs ran, 1 March to 7 June 2025 (99 days)"
    relative = numbers(period__from_s=0, period__to_s=8_553_600)
    assert plain(subtitle(relative, ABOUT)) == "How reliably its jobs ran, over 99 days"
    zoned = ABOUT | {"clock": "America/Los_Angeles"}
    assert plain(subtitle(numbers(), zoned)) == "How reliably its jobs ran, 28 February to 6 June 2025 (99 days)"


def test_markup_and_keys_in_trace_text_are_escaped():
    hostile = facts(numbers(), ABOUT | {"failure_words": ["<b>", "{data.jobs|9}"]})[-1].note
    assert not list_keys(hostile) and "<b>" not in to_html(hostile)


def test_small_charts_are_escaped_and_stay_within_their_box():
    charts = [tile.mini for tile in make_brief(numbers(), {}, ABOUT).tiles if tile.mini]
    charts += [
        {"kind": "bar", "parts": [{"label": "<b>", "share": 1.0, "colour": "c3"}]},
        {"kind": "fall", "points": [[8, 9e6, 5e6, 2e7]], "line": [[8, 9e6]], "target": [1024, 7e4, "<b>"]},
    ]
    for svg in map(draw_mini, charts):
        assert svg.startswith("<svg") and 'role="img"' in svg and "<b>" not in svg
        for x in re.findall(r'(?:cx|x)="([\d.-]+)"', svg):
            assert 0 <= float(x) <= 320
        for y in re.findall(r'(?:cy|y)="([\d.-]+)"', svg):
            assert 0 <= float(y) <= 46
    assert draw_mini(None) == ""


def test_missing_ends_of_most_failures_withhold_rates():
    m = numbers(
        "sizes.rate.f",
        "sizes.rate.ci",
        sizes__rate__reason=("70.3% of the failures have no recorded end", "label"),
        lost_work__failed_runs=(12_806, "runs"),
        lost_work__failed_without_time=9_000,
        without_end__share=0.7,
        without_end__without_end=9_000,
        mttf__range__low_s=(3_600.0, "s"),
        mttf__range__high_s=(7_200.0, "s"),
    )
    tiles = {tile.name: tile for tile in make_brief(m, {}, ABOUT).tiles}
    assert plain(tiles["failed_gpu_time"].value) == "≥ 48.6%" and tiles["failed_gpu_time"].badge == "lower bound"
    assert tiles["node_rate"].state == WITHHELD
    assert plain(tiles["node_rate"].means).startswith("70.3% of the failures have no recorded end")
    assert "GPU time" not in bottom_line(m, ABOUT)[0]
