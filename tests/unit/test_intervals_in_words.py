"""Sentences and charts give the clustered interval, or else the exact interval with a proviso."""

import polars as pl
import pytest
from ttf.analyses.time_to_failure.fit_mttf import MTTF
from ttf.display.charts.intervals import add_bounds, clustering_note
from ttf.display.metrics import CI_S, Metrics, cells
from ttf.display.phrases import fill_slots, strip_markup
from ttf.display.trace_numbers import Numbers
from ttf.engine.words import clustering_words

HOUR = 3600
ROW = {
    "mttf_s": 31.2 * HOUR,
    "ci_low_s": 29.8 * HOUR,
    "ci_high_s": 32.7 * HOUR,
    "ci_low_clustered_s": 5.69 * HOUR,
    "ci_high_clustered_s": 171 * HOUR,
    "cluster_by": "request profile",
    "clusters": 19.609,
}


def numbers(**changes):
    metrics = Metrics()
    metrics.add([cells(MTTF, "mttf", f"mttf_s {CI_S}")], {"mttf": MTTF.frame([ROW | changes])})
    return Numbers(metrics)


FEW_CLUSTERS = {"ci_low_clustered_s": None, "ci_high_clustered_s": None, "clusters": 2.4}


@pytest.mark.parametrize(
    ("changes", "interval", "sentence"),
    [
        (
            {},
            "95% CI 5.69–171 h by request profile only",
            "The interval is clustered by request profile only (19.6 effective clusters). If pods were "
            "independent, the CI would be 29.8–32.7 h.",
        ),
        (
            {"cluster_by": "user and week"},
            "95% CI 5.69–171 h",
            "The interval is clustered by user and week (19.6 effective clusters). If pods were independent, the CI "
            "would be 29.8–32.7 h.",
        ),
        (
            FEW_CLUSTERS,
            "95% CI 29.8–32.7 h if independent",
            "The interval is valid only if pods are independent: 2.40 effective clusters by request profile are "
            "too few for a clustered interval.",
        ),
        (
            FEW_CLUSTERS | {"cluster_by": None, "clusters": None},
            "95% CI 29.8–32.7 h if independent",
            "The interval is valid only if pods are independent: the trace records no users.",
        ),
        (
            FEW_CLUSTERS | {"ci_low_s": None},
            "95% CI 32.7 h or less if independent",
            "The interval is valid only if pods are independent: 2.40 effective clusters by request profile are "
            "too few for a clustered interval.",
        ),
        (
            FEW_CLUSTERS | {"ci_high_s": None},
            "95% CI 29.8 h or more if independent",
            "The interval is valid only if pods are independent: 2.40 effective clusters by request profile are "
            "too few for a clustered interval.",
        ),
    ],
)
def test_the_clustered_interval_comes_first(changes, interval, sentence):
    m = numbers(**changes)
    texts = m.interval("mttf.mttf_s"), fill_slots(m.describe_clustering("mttf.mttf_s", "pod"), m)
    assert [strip_markup(text).replace("\u00a0", " ") for text in texts] == [interval, sentence]


def test_a_number_without_any_interval_has_none_in_words():
    no_bounds = dict.fromkeys(("ci_low_s", "ci_high_s"))
    assert numbers(**FEW_CLUSTERS | no_bounds).interval("mttf.mttf_s") == "no interval"


def test_a_chart_draws_the_clustered_interval_or_marks_the_exact_one():
    frame = pl.DataFrame([ROW, ROW | FEW_CLUSTERS])
    intervals = add_bounds(frame, "_s")
    assert intervals.select("low", "high", "independent").rows() == [
        (5.69 * HOUR, 171 * HOUR, False),
        (29.8 * HOUR, 32.7 * HOUR, True),
    ]
    assert clustering_note(intervals).startswith(
        "Intervals are clustered by request profile only. Dashed intervals are valid "
    )
    assert "only if failures are independent" in clustering_note(intervals.filter("independent"))


def test_intervals_say_whether_they_allow_for_weeks():
    assert clustering_words(["user and week"]) == "user and week"
    assert clustering_words(["user"]) == "user only"
    assert clustering_words(["user", "user and 14 days"]) == "user, with enough data also by 14 days"
    assert clustering_words(["user and week", "request profile of one user"]) == (
        "request profile of one user or user, with enough data also by week"
    )
