"""Tests of the section heads on time to failure, scaling, nodes and periods: one claim for any trace."""

from types import SimpleNamespace

import polars as pl
import pytest
from filled_texts import filled
from head_checks import check_claim
from ttf.analyses.factors.estimate_hazards import page as hazards
from ttf.analyses.nodes.find_lemon_nodes import page as lemons
from ttf.analyses.nodes.track_failure_rate import page as rate
from ttf.analyses.outages.list_drains import page as drains
from ttf.analyses.scaling.measure_sizes import page as sizes
from ttf.analyses.time_to_failure.fit_mttf import page as mttf
from ttf.display.phrases import list_keys, strip_markup
from ttf.display.section_head import Line
from ttf.display.trace_numbers import Numbers
from ttf.page.brief.actions import actions
from ttf.page.brief.tiles import nodes_with_excess

hazards, lemons, rate, drains, sizes, mttf, actions, nodes_with_excess = map(
    filled, (hazards, lemons, rate, drains, sizes, mttf, actions, nodes_with_excess)
)

DURATIONS = {"survival.n": 900, "survival.events": 200, "survival.1h.survival": 0.756, "mttf.mttf_s": 109_100.0}
DURATIONS |= {"mttf.ci_low_clustered_s": 73_000.0, "mttf.ci_high_clustered_s": 162_000.0, "mttf.exposure_s": 2e7}
HAZARD = {"lifetimes.verdict": "falls", "lifetimes.verdict_within": "falls", "lifetimes.group_by": "user"}
HAZARD |= {"lifetimes.shape_within": 0.56, "lifetimes.shape_within_ci_low_clustered": 0.53}
HAZARD |= {"lifetimes.shape_within_ci_high_clustered": 0.6}
HAZARD |= {"lifetimes.split_age_s": 71_000, "lifetimes.young_mttf_s": 58_000.0, "lifetimes.young_events": 180}
HAZARD |= {"lifetimes.old_mttf_s": 904_000.0, "lifetimes.old_events": 20, "lifetimes.misleads_clustered": True}
HAZARD |= {"lifetimes.largest_gap": -0.4, "lifetimes.at_s": 308_000, "lifetimes.km_survival": 0.464}
HAZARD |= {"lifetimes.exponential_survival": 0.059}
LIMITS = {f"survival.limits.{number}.time_s": hours * 3_600 for number, hours in ((1, 1), (2, 4), (3, 24))}
RATE = {"sizes.basis": "event", "sizes.rate.failures": 72, "sizes.rate.node_days": 6_404.0, "sizes.rate.ci_low": 5.0}
RATE |= {"sizes.rate.ci_high": 8.5, "sizes.rate.failures_per_1000_node_days": 6.56, "sizes.rate.above_gpus": 128}
LAW = {"sizes.law.slope": -0.96, "sizes.law.ci_low": -1.17, "sizes.law.ci_high": -0.75, "sizes.law.verdict": "agrees"}
LAW |= {"sizes.law.cluster_by": "user", "sizes.projects_to_nodes": 256, "sizes.no_projection": "it goes no further"}
PROJECTED = {"sizes.projected.1024.gpus": 1024, "sizes.projected.1024.mttf_s": 102_900.0}
PROJECTED |= {"sizes.projected.1024.low_s": 73_760.0, "sizes.projected.1024.high_s": 143_600.0}
WITHHELD = {"sizes.projects_to_nodes": 0, "sizes.no_projection": "too few", "sizes.needed": "larger runs"}
WINDOWS = {"sizes.basis": "event", "sizes.over_time.windows": 54, "sizes.over_time.failures_in_windows": 54}
for _end, _rate in (("lowest", 7.0), ("highest", 11.4)):
    _window = {"failures_per_1000_node_days": _rate, "ci_low": _rate - 1, "ci_high": _rate + 1}
    _window |= {"window": "7 days to 2025-01-28"}
    WINDOWS |= {f"sizes.over_time.{_end}.{name}": value for name, value in _window.items()}
NODES = {"lemons.nodes": 200, "lemons.tested": 200, "lemons.lemons": 0, "lemons.counted": 69, "lemons.basis": "event"}
NODES |= {"lemons.detectable_ratio": 3.4, "lemons.attributed_share": 1.0, "lemons.unattributed": 0}
NODES |= {"lemons.window_failures": 69, "lemons.failures": 69}
# No node was found; only a rate of 140 times that of the other nodes would be detectable.
FEW_NAMED = {"lemons.detectable_ratio": 140.0, "lemons.failures": 6, "lemons.attributed_share": 6 / 69}
DRAINS = {"drains.nodes": 200, "drains.listed": 0, "drains.outages": 4}
LEMONS = NODES | {"lemons.lemons": 2, "lemons.share_of_failures": 0.139}


def numbers(*values):
    units = {
        "_s": "s",
        "share": "share",
        "survival": "share",
        "incidence_low": "share",
        "incidence_high": "share",
        "of_failures": "share",
    }
    return Numbers(
        {
            key: {
                "value": value,
                "n": 100,
                "unit": next((unit for suffix, unit in units.items() if key.endswith(suffix)), "1"),
            }
            for group in values
            for key, value in group.items()
        }
    )


def trace(unit="job", has_jobs=True, empty=None):
    nodes = pl.DataFrame({"node": ["n041", "{x|y}<b>", "n1"], "lemon": [True, True, False]})
    figures = {"mttf_by_gpus": {"empty": empty}}
    declaration = {"unit": unit, "subject": unit, "gives": "jobs" if has_jobs else "durations"}
    return SimpleNamespace(info=declaration, has_jobs=has_jobs, figures=figures, table=lambda name: nodes)


@pytest.mark.parametrize(
    ("values", "claim"),
    [
        (HAZARD, "After 1 hour 75.6% of jobs have not failed; the hazard decreases with age"),
        (HAZARD | {"lifetimes.verdict_within": "rises"}, "have not failed; the hazard increases with age"),
        (HAZARD | {"lifetimes.verdict_within": "stays"}, "; the hazard shows no change with age"),
        ({"lifetimes.verdict": "falls"}, "; their hazard decreases, or jobs differ in risk"),
        (HAZARD | LIMITS, "Jobs fail early, and in steps at the time limits of 1\xa0h, 4\xa0h and 24\xa0h"),
    ],
)
def test_the_claim_on_time_to_failure_is_the_verdict(values, claim):
    m = numbers(DURATIONS, values)
    assert check_claim(mttf.head(trace(), m), m).endswith(claim)


def test_mttf_is_a_range_if_it_depends_on_missing_ends():
    m = numbers(
        DURATIONS, {"mttf.range.low_s": 3_600.0, "mttf.range.high_s": 7_200.0, "mttf.range.why": "8% lack an end"}
    )
    head = mttf.head(trace(), m)
    check_claim(head, m)
    assert [strip_markup(key.value) for key in head.keys if "range" in key.label] == ["1–2\u00a0h"]
    assert head.callout.text == "8% lack an end."


RANGE = {"mttf.range.low_s": 3_600.0, "mttf.range.high_s": 7_200.0, "mttf.range.why": "ends lack", "mttf.events": 9}
RANGE |= {f"incidence.failure.3600s.incidence_{end}": share for end, share in (("low", 0.04), ("high", 0.2))}


def test_no_estimate_rests_on_a_few_failures_with_an_end():
    """If many failures have no end, the sections lead with the range, or with the reason of their tables."""
    reason = "90.0% of the failures have no recorded end"
    withheld = dict.fromkeys(("sizes.rate.reason", "sizes.over_time.reason", "cox.reason"), reason)
    missing_ends = {"without_end.share": 0.9, "without_end.failures": 90, "without_end.without_end": 81}
    m = numbers(RANGE, missing_ends, withheld, {"survival.events": 9})
    head = mttf.head(trace(), m)
    assert check_claim(head, m) == "4.0–20.0% of jobs fail within 1 hour"
    assert head.charts == () and [key.label for key in head.keys] == ["MTTF over all ages, range"]
    for page in (sizes, rate):
        line = page.head(trace(), m)
        assert isinstance(line, Line) and line.result == reason
    assert hazards.head(trace(), m) is None
    assert [line.result for line in hazards.lines(trace(), m)] == [f"not estimated: \u2068{reason}\u2069"]


@pytest.mark.parametrize(
    ("values", "claim"),
    [
        (LAW | PROJECTED, "Infrastructure MTTF falls in proportion to GPUs, to 28.6\u00a0h at 1,024 GPUs (projected)"),
        (LAW | {"sizes.law.verdict": "too few"},
         "Infrastructure MTTF has slope −0.96 in size; the data are too few to confirm 1/N"),
        (LAW | WITHHELD | {"sizes.law.verdict": "rejected", "sizes.law.slope": -0.4, "sizes.law.ci_high": -0.1},
         "Infrastructure MTTF falls more slowly than 1/N: pooled slope −0.40, where 1/N gives −1"),
        (LAW | WITHHELD | {"sizes.law.verdict": "rejected", "sizes.law.ci_high": 0.3},
         "Infrastructure MTTF shows no significant fall with size: pooled slope −0.96, where 1/N gives −1"),
        ({"sizes.law.reason": "one size only", "sizes.largest_run.gpus": 8} | WITHHELD,
         "No job used more than 8 GPUs, so scaling with size cannot be tested"),
    ],
)  # fmt: skip
def test_the_claim_on_scaling_is_the_verdict_on_the_law(values, claim):
    m = numbers(RATE, values)
    head = sizes.head(trace(), m)
    assert check_claim(head, m) == claim
    assert (head.callout is not None) == ("sizes.needed" in values)


def test_exact_intervals_are_used_without_clusters_but_not_with_few_clusters():
    clusters = {f"sizes.over_time.{end}.cluster_by": "user" for end in ("lowest", "highest")}
    unclustered, few_clusters = numbers(WINDOWS), numbers(WINDOWS, clusters)
    assert "varied between 7.00 and 11.4" in check_claim(rate.head(trace(), unclustered), unclustered)
    head = rate.head(trace(), few_clusters)
    assert "ranged from 7.00 to 11.4" in check_claim(head, few_clusters)
    assert "too few clusters" in strip_markup(head.text[0])


@pytest.mark.parametrize(
    ("low", "high", "claim"),
    [
        (12.0, 8.0, "The infrastructure failure rate shows no significant change over 5 windows"),
        (None, 8.0, "The infrastructure failure rate ranged from 7.00 to 11.4 per 1,000 node-days"),
    ],
)
def test_a_change_is_claimed_only_if_intervals_do_not_overlap(low, high, claim):
    bounds = {"lowest.ci_high_clustered": low, "highest.ci_low_clustered": high}
    bounds = {f"sizes.over_time.{name}": bound for name, bound in bounds.items() if bound is not None}
    m = numbers(WINDOWS, bounds | {"sizes.over_time.windows": 5})
    assert check_claim(rate.head(trace(), m), m) == claim


def test_names_of_nodes_with_excess_failures_are_escaped():
    m = numbers(WINDOWS, LEMONS)
    (note,) = (key.note for key in rate.head(trace(), m).keys if key.label == "Nodes with excess failures")
    assert strip_markup(note) == "n041, (x|y)<b>; 13.9% of failures" and list_keys(note) == ["lemons.share_of_failures"]
    assert lemons.lines(trace(), m) == []
    (line,) = lemons.lines(trace(), numbers(NODES))
    assert line.checked and "3.40 times the failures would be detected" in strip_markup(line.result)


@pytest.mark.parametrize(
    ("changes", "claim", "reason", "needed"),
    [
        (
            FEW_NAMED,
            "too few failures name a node",
            "6 of 69 failures name a node",
            "with FailedNode, health events or node logs, more would",
        ),
        (
            {"lemons.detectable_ratio": 5.1},
            "too few failures to compare nodes",
            "69 failures are too few for 200 nodes",
            "a longer record would tell more",
        ),
        (
            {"lemons.detectable_ratio": None, "lemons.basis": "proxy"},
            "too few failures to compare nodes",
            "69 failures are too few for 200 nodes",
            "states or health events would tell more",
        ),
    ],
)
def test_finding_no_node_is_inconclusive_without_power(changes, claim, reason, needed):
    values = {name: value for name, value in (NODES | changes).items() if value is not None}
    m = numbers(WINDOWS, values)
    head = rate.head(trace(), m)
    assert check_claim(head, m).endswith(f"; {claim}")
    assert ("cannot tell", f"{reason}; {needed}") in [(key.value, strip_markup(key.note)) for key in head.keys]
    (line,) = lemons.lines(trace(), m)
    assert not line.checked and strip_markup(line.result) == f"cannot tell: {reason}"
    nodes_head = lemons.head(trace(), m)
    assert check_claim(nodes_head, m) == f"Cannot tell whether any of 200 nodes fails more: {reason}"
    tile = nodes_with_excess(m)
    assert tile.state == "withheld" and strip_markup(tile.means).lower() == f"cannot tell: {reason}; {needed}.".lower()
    assert actions(m, "job")[1] == ()


def test_nodes_that_cannot_be_compared_are_not_checked():
    """Their line would stand under the heading "Checked, nothing found"."""
    (line,) = lemons.lines(trace(), numbers(NODES | {"lemons.tested": 0}))
    assert not line.checked and strip_markup(line.result).startswith("no node can be compared: 69 failures")
    (line,) = drains.lines(trace(), numbers(DRAINS | {"drains.detectable_ratio": 12.0}))
    assert not line.checked and strip_markup(line.result) == (
        "cannot tell: 4 outages are too few for 200 nodes; a longer record would tell more"
    )
