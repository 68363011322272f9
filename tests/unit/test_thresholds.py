"""A user's thresholds: the limit of each kind, the message of a missing number, and refused rules."""

import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.page.checks.thresholds import (
    CROSSED,
    HELD,
    UNTOLD,
    Interval,
    Rule,
    Subject,
    evaluate,
    format_value,
    read_interval,
)
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.threshold_file import build_number_pattern, load_rules, parse_limit

EXAMPLE = Path(__file__).parents[2] / "config" / "thresholds.yaml"


def number(value, unit="share", n=100, source="tables/outcomes.csv"):
    return {"value": value, "unit": unit, "n": n, "source": source}


METRICS = {
    "outcomes.failure_share": number(0.3),
    "outcomes.failure_share_low": number(0.28),
    "outcomes.failure_share_high": number(0.32),
    "outcomes.failure_share_low_clustered": number(0.2),
    "outcomes.failure_share_high_clustered": number(0.4),
    "outcomes.cluster_by": number("user", "label"),
    "outcomes.failure.runtime_median_s": number(540.0, "s", 1058),
    "outcomes.failure.runtime_median_low_clustered_s": number(300.0, "s"),
    "outcomes.failure.runtime_median_high_clustered_s": number(900.0, "s"),
    "outcomes.failure.cluster_by": number("user", "label"),
    "mttf.mttf_s": number(7200.0, "s", None),
    "mttf.ci_low_s": number(3600.0, "s"),
    "ettr.mttf_s": number(90_000.0, "s"),
    "ettr.mttf_low_s": number(60_000.0, "s"),
    "ettr.mttf_high_s": number(130_000.0, "s"),
    "ettr.estimate.wall_clock_ettr": number(0.8),
    "ettr.low.wall_clock_ettr": number(0.84),
    "ettr.high.wall_clock_ettr": number(0.75),
    "data.jobs": number(4001, "jobs", None),
    "changes.failure_share.verdict": number("within chance", "label"),
    "ettr.valid": number(True, "truth", None),
    "sizes.rate.nodes": number(1, "nodes", None) | {"source": "sizes.csv", "line": 2},
}
SLURM = Subject("slurm", METRICS, {"ettr.measured_rate.wall_clock_ettr": "the 1/N law is rejected."})


def answer_rule(**rule):
    return evaluate(Rule(**rule), SLURM)


def next_above(value):
    return math.nextafter(value, math.inf)


def next_below(value):
    return math.nextafter(value, -math.inf)


SHARE, MEDIAN, JOBS = "outcomes.failure_share", "outcomes.failure.runtime_median_s", "data.jobs"


@pytest.mark.parametrize(
    ("key", "kind", "by", "bound"),
    [
        # The bound nearer to the limit decides; a clustered bound replaces an unclustered one.
        (SHARE, "above", "interval", 0.2),
        (SHARE, "below", "interval", 0.4),
        (SHARE, "above", "estimate", 0.3),
        ("mttf.mttf_s", "above", "interval", 3600.0),
        ("ettr.mttf_s", "below", "interval", 130_000.0),
        ("ettr.estimate.wall_clock_ettr", "above", "interval", 0.75),
        ("ettr.estimate.wall_clock_ettr", "below", "interval", 0.84),
        # A number without an interval is compared itself.
        (JOBS, "above", "interval", 4001.0),
        (JOBS, "below", "interval", 4001.0),
    ],
)
def test_a_rule_is_crossed_beyond_its_limit_and_not_at_it(key, kind, by, bound):
    limit_held, limit_crossed = (bound, next_below(bound)) if kind == "above" else (bound, next_above(bound))
    assert answer_rule(number=key, kind=kind, limit=limit_held, by=by).state == HELD
    assert answer_rule(number=key, kind=kind, limit=limit_crossed, by=by).state == CROSSED


@pytest.mark.parametrize(
    ("key", "kind", "limit", "state"),
    [
        ("changes.failure_share.verdict", "is", "changed", HELD),
        ("changes.failure_share.verdict", "is", "within chance", CROSSED),
        ("changes.failure_share.verdict", "is_not", "changed", CROSSED),
        ("ettr.valid", "is_not", False, CROSSED),
    ],
)
def test_texts_and_truths(key, kind, limit, state):
    assert answer_rule(number=key, kind=kind, limit=limit).state == state


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("ettr.measured_rate.wall_clock_ettr", "the 1/N law is rejected"),
        ("sizes.rate.failures", "no node was seen at work"),
        ("lemons.lemons", "the records of the trace do not contain it"),
    ],
)
def test_a_missing_number_states_its_reason_and_fails_only_on_request(tmp_path, key, reason):
    (tmp_path / "sizes.csv").write_text("nodes,failures,reason\n1,,no node was seen at work\n")
    subject = SLURM._replace(folder=tmp_path)
    sentence = f"slurm: {key} is not available: {reason}."
    for missing, state in (("tell", UNTOLD), ("ignore", UNTOLD), ("fail", CROSSED)):
        rule = Rule(number=key, kind="above", limit=1, if_missing=missing)
        assert evaluate(rule, subject) == (state, sentence)


def test_a_bound_and_a_text_have_no_interval():
    assert read_interval(METRICS, "outcomes.failure_share_low") is None
    assert read_interval(METRICS, "outcomes.cluster_by") is None
    assert read_interval(METRICS, "ettr.mttf_s") == Interval(60_000.0, 130_000.0, "")


HOSTILE = "a\n\x1b[2J{0.__class__}\u202e %s $(id) `id`"


def test_a_hostile_text_is_printed_and_harmless():
    sentence = answer_rule(number=JOBS, kind="above", limit=1, say=HOSTILE).sentence
    assert sentence.endswith("a \\x1b[2J{0.__class__}\\u202e %s $(id) `id`")
    subject = Subject("slurm", {"states.most.state": number(HOSTILE, "label")})
    result = evaluate(Rule("states.most.state", "is", HOSTILE), subject)
    assert result.state == CROSSED
    assert result.sentence.isprintable()
    assert format_value("x" * 3, "label") == '"xxx"'


# The file of rules -----------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(0, 3), st.sampled_from(["%", "s", "min", "h", "days", "day", "years"]))
def test_a_limit_with_a_unit_is_the_nearest_double(number, digits, unit):
    size = {"%": Fraction(1, 100), "s": 1, "min": 60, "h": 3600, "days": 86_400, "day": 86_400, "years": 31_557_600}
    text = f"{number / 10**digits:.{digits}f}" if digits else f"{number}"
    assert parse_limit(f"{text} {unit}") == parse_limit(text + unit) == float(Fraction(text) * size[unit])


def load(tmp_path, text, subjects=(SLURM,)):
    (tmp_path / "mine.yaml").write_text(text)
    return load_rules(tmp_path / "mine.yaml", subjects)


def test_the_rules_of_a_file_are_read(tmp_path):
    text = """\
rules:
  - {number: outcomes.failure_share, above: 30 %, by: estimate, say: "Look."}
  - {number: mttf.mttf_s, below: 12 h, if_missing: fail, trace: slurm}
  - {number: changes.failure_share.verdict, is: changed}
  - {number: ettr.valid, is_not: true}
  - {number: data.jobs, below: 100}
"""
    assert load(tmp_path, text) == [
        Rule(SHARE, "above", 0.3, by="estimate", say="Look."),
        Rule("mttf.mttf_s", "below", 43_200.0, if_missing="fail", trace="slurm"),
        Rule("changes.failure_share.verdict", "is", "changed"),
        Rule("ettr.valid", "is_not", True),
        Rule(JOBS, "below", 100),
    ]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("number: outcomes.failure_shar, above: 1", "{number}there is no number 'outcomes.failure_shar'; did you mean"),
        (
            "number: data.jobs",
            "line 2, column 5: rules[0]: needs above, or below, or is, or is_not: exactly one of them",
        ),
        ("number: data.jobs, above: 1 jobs", "{above}'1 jobs' is not allowed; expected a number or text (in the unit"),
        (
            "number: data.jobs, above: 5 %",
            "{above}5 % is a share, and the unit of data.jobs is jobs; expected that unit",
        ),
        ("number: outcomes.failure_share, above: 30", "30 is more than 100%: outcomes.failure_share is a share;"),
        ("number: ettr.valid, above: 1", "rules[0].above: ettr.valid is a text, now True; expected is or is_not."),
        ("number: data.jobs, above: 1, trace: slum", "rules[0].trace: slum is not a trace of this study; did you"),
    ],
)
def test_an_invalid_rule_names_line_and_key(tmp_path, entry, message):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, f"rules:\n  - {{{entry}}}\n")
    (line,) = str(error.value).splitlines()
    assert line.startswith(f"{tmp_path / 'mine.yaml'}: line 2, column ")
    prefixes = {"number": "line 2, column 6: rules[0].number: ", "above": "rules[0].above: "}
    assert message.format(**prefixes) in line


@pytest.mark.parametrize("text", ["rules: []\n", "", "rules: [\n"])
def test_a_file_without_rules_is_refused(tmp_path, text):
    with pytest.raises(ConfigError, match=r"mine\.yaml: "):
        load(tmp_path, text)


def test_a_trace_without_the_number_does_not_use_another_trace(tmp_path):
    """The unit comes from the trace that the rule names."""
    other = Subject("other", {"traces.most": number("slurm", "label")})
    text = "rules:\n  - {number: traces.most, is: slurm, trace: other}\n"
    assert load(tmp_path, text, (SLURM, other)) == [Rule("traces.most", "is", "slurm", trace="other")]


def test_the_pattern_of_documented_numbers_is_empty_without_the_docs(tmp_path):
    assert not build_number_pattern(tmp_path / "none.md").fullmatch("")
    (tmp_path / "metrics.md").write_text("| `a.{b,c.d,…}.e` | share |\n")
    pattern = build_number_pattern(tmp_path / "metrics.md")
    assert [bool(pattern.fullmatch(key)) for key in ("a.b.e", "a.other.e", "a.e", "a.x.y.e", "aXb.e")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_the_example_names_existing_numbers(tmp_path):
    empty = Subject("mine", {})
    assert len(load_rules(EXAMPLE, [empty])) == EXAMPLE.read_text().count("- number:")
