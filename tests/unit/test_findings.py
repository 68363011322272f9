"""The findings on top of the page and the sections that every trace has: in good English for any jobs."""

import re
from pathlib import Path

import polars as pl
import pytest
from prose import slips
from ttf.analyses.fit_mttf import numbers as of_lives
from ttf.analyses.fit_mttf.compute import failures_without_end, survival_steps
from ttf.analyses.fit_mttf.lifetimes import lifetime_models
from ttf.analyses.judge_lifetimes import LIFETIME_VERDICT, MIXTURE
from ttf.analyses.judge_lifetimes.compute import lifetime_verdict
from ttf.analyses.judge_lifetimes.numbers import numbers as of_lifetimes
from ttf.analyses.judge_lifetimes.within import shapes
from ttf.analyses.split_outcomes.compute import outcome_table
from ttf.analyses.split_outcomes.numbers import of_median_run_times, of_outcomes
from ttf.jobs import JOB_COLUMNS, NODE_COLUMNS
from ttf.lives import lives_of_jobs
from ttf.numbers.metrics import Metrics
from ttf.numbers.stages import of_jobs
from ttf.report.blocks import Numbers
from ttf.report.source import MOST_IN_FULL, environment, report_source
from ttf.report.trace import Trace
from ttf.rooms import places
from ttf.stats.mttf import mean_time_to_failure
from ttf.stats.survival import survival_tables

ROOT = Path(__file__).resolve().parents[2]
JINJA = environment(ROOT / "report", places().values())
TRACE_END_S = 100_000


def jobs(*rows):
    """rows: (outcome, run time), GPU jobs submitted at 0 and started at once; None: not known, or not yet."""
    given = pl.DataFrame(
        [
            (outcome, time, None if outcome == "waiting" else 0, None if time is None else time)
            for outcome, time in rows
        ],
        schema={name: JOB_COLUMNS[name] for name in ("outcome", "runtime_s", "start_s", "end_s")},
        orient="row",
    )
    known = {"submit_s": 0, "trace_end_s": TRACE_END_S, "gpu_milli": 1000, "size": 1, "nodes": 1}
    blank = {name: pl.lit(known.get(name), dtype=kind) for name, kind in JOB_COLUMNS.items() if name not in given}
    return given.with_columns(**blank).select(*JOB_COLUMNS)


CASES = {
    "ordinary": jobs(
        *((("success", "failure", "running")[n % 3], None if n % 3 == 2 else 50 + n * n) for n in range(60))
    ),
    "no failures": jobs(("success", 10), ("success", 20), ("running", None)),
    "no successes": jobs(*(("failure", 10 + n) for n in range(20)), ("running", None)),
    "one success": jobs(("success", 10)),
    "one failure": jobs(("failure", 10)),
    "two failures": jobs(("failure", 10), ("failure", 11)),
    "failures without an end": jobs(("failure", None), ("failure", 30), ("failure", 40), ("success", 50)),
    "one failure, without an end": jobs(("failure", None), ("success", 50)),
    "all waiting": jobs(*[("waiting", None)] * 5),
    "one running": jobs(("running", None)),
    "all cancelled": jobs(("cancelled", 40), ("cancelled", 50)),
    "of 0 s": jobs(*[("failure", 0), ("success", 0)] * 10),
    "nobody": jobs(),
}


def numbers_of(frame):
    metrics = Metrics()
    for name, rows in (("rows_read", frame.height), ("rows_kept", frame.height), ("rows_quarantined", 0)):
        metrics.put(f"data.{name}", rows, "rows", "quality/row_account.csv")
    of_jobs(metrics, frame, pl.DataFrame(schema=NODE_COLUMNS))
    of_outcomes(metrics, outcome_table(frame))
    of_median_run_times(metrics, frame)
    lives = lives_of_jobs(frame)
    curves, summary = survival_tables(lives, "failure", ["all"])
    of_lives.of_survival(metrics, summary, curves)
    mttf = mean_time_to_failure(lives, "failure", ["all"])
    of_lives.of_mttf(metrics, mttf, failures_without_end(lives, "failure", ["all"]))
    models = lifetime_models(lives, "failure", ["all"])
    of_lives.of_models(metrics, models)
    found = shapes(lives, {"failure": (pl.col("event") == "failure").fill_null(False)}, ["all"])
    of_lifetimes(metrics, {"lifetime_verdict": lifetime_verdict(models, curves, found)})
    of_lives.of_mttf_range(metrics)
    return Numbers(metrics)


class Made(Trace):
    """A trace whose numbers are at hand."""

    @property
    def metrics(self):
        return self.about["metrics"]


def made(frame, number=1, **about):
    about = {"gives": "jobs", "unit": "job", "analyses": [], "synthetic": False, "parts": 0, "format": "table"} | about
    return Made(f"made_{number}", number, about | {"metrics": numbers_of(frame)}, Path(), {})


def told(section, trace):
    text = JINJA.select_template([f"sections/{section}.qmd", f"{section}.qmd"]).render(
        trace=trace,
        id=trace.id,
        unit=trace.about["unit"],
        m=trace.metrics,
        chart=lambda name: "",
        table=lambda name, caption: "",
        has_chart=lambda name: False,
        has_table=lambda name: False,
        by_stratum=[],
        features=[],
        most_strata=12,
        most_parts=20,
    )
    assert not re.search(r"^(@sec|\(@)", text, re.MULTILINE)
    return text


@pytest.mark.parametrize(
    "section", ["findings", "findings_in_a_line", "data", "outcomes", "run_times", "survival", "lifetimes"]
)
@pytest.mark.parametrize("case", CASES)
def test_any_jobs_are_told_in_good_english(section, case):
    text = told(section, made(CASES[case]))
    assert slips(text) == []
    if section == "findings":
        found = re.findall(r"^- ", text, re.MULTILINE)
        assert 1 <= len(found) <= 5
        assert len(re.findall("@sec-t1-", text)) == len(found), "each says where it is from"
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("Mean time to failure: ")]
        assert all(line.startswith("- **") for line in lines)


WITHIN = {"within": "user", "groups": 40, "shape_within": 0.9, "frailty_variance": 1.0, "clusters": 22.0}
WITHIN |= {"shape_within_ci_low": 0.7, "shape_within_ci_high": 1.1, "cluster_by": "user", "p_clustered": 0.002}
WITHIN |= {"shape_ci_low_clustered": 0.6, "shape_ci_high_clustered": 0.95, "misleads_clustered": True}


@pytest.mark.parametrize(
    ("found", "said", "in_a_bullet"),
    [
        (
            {"verdict_within": "falls"} | WITHIN,
            "**The hazard decreases with age",
            "falls with age within one user",
        ),
        (
            {"verdict_within": "rises"} | WITHIN,
            "**The hazard increases with age",
            "rises with age within one user",
        ),
        (
            {"verdict_within": "stays"} | WITHIN,
            "in a mixture of constant rates",
            "stays with age within one user",
        ),
        ({"verdict_within": MIXTURE} | WITHIN, f"**Open: {MIXTURE}.**", f": {MIXTURE}"),
        (
            {"verdict_within": "unclear"} | WITHIN,
            "a decreasing and an increasing hazard",
            "cannot be told",
        ),
        ({}, "the trace names nothing that repeats", "cannot be told"),
        ({"cluster_by": "user", "clusters": 2.5}, "there are 2.50 effective clusters, too few", "cannot be told"),
        ({"cluster_by": "user", "clusters": 9.0}, "too little repeats", "cannot be told"),
    ],
)
def test_what_is_said_of_the_hazard_is_what_was_seen_within_what_repeats(found, said, in_a_bullet):
    row = {"event": "failure", "stratum_by": "all", "stratum": "all", "n": 900, "events": 200, "verdict": "falls"}
    row |= {"shape": 0.8, "shape_ci_low": 0.75, "shape_ci_high": 0.85, "lr_statistic": 9.0, "p_value": 0.003}
    row |= {"misleads": True, "largest_gap": 0.1, "at_s": 900, "km_survival": 0.4, "exponential_survival": 0.5} | found
    metrics = Metrics()
    of_lifetimes(metrics, {"lifetime_verdict": LIFETIME_VERDICT.frame([row])})
    trace = made(CASES["ordinary"])
    trace.about["metrics"] = Numbers(metrics)
    text, bullet = told("lifetimes", trace), told("findings", trace)
    assert slips(text) == slips(bullet) == []
    assert said in text
    assert in_a_bullet in bullet
    assert ("A single MTTF does not describe these jobs" in text) == found.get("misleads_clustered", False)


def test_findings_in_words():
    def findings(case):
        return told("findings", made(CASES[case])).replace("\u00a0", " ")

    assert (
        "**The one job that ended did not fail** (95 % interval 0.0 % to 79.3 % if independent; @sec-t1-outcomes)."
        in (findings("one success"))
    )
    assert "**All 20 jobs that ended failed**" in findings("no successes")
    assert "**None of 2 jobs that ended failed**" in findings("no failures")
    assert "**No failure was seen** in " in findings("no failures")
    assert "lies between" in findings("failures without an end")
    assert "**No job of this trace has ended**" in findings("all waiting")
    for case, said in (
        ("one failure", "The one job that ended failed"),
        ("no successes", "All 20 jobs that ended failed"),
    ):
        assert f"**{said}** (95 %" in told("findings_in_a_line", made(CASES[case]))
    ordinary = findings("ordinary")
    # Of 20 failures the median lies between the 6th and the 15th: 50 + (1 + 3 n)² s.
    assert "(95 % interval 5.10 min to 31.6 min if independent), half of the successes" in ordinary


def test_templates_ask_for_analyses_that_exist():
    templates = [*ROOT.glob("report/**/*.qmd"), *(path for room in places().values() for path in room.glob("*.qmd"))]
    asked = {name for path in templates for name in re.findall(r'"(\w+)" in trace\.analyses', path.read_text())}
    assert asked
    assert asked <= set(places())


def page(count, **about):
    traces = [made(CASES["ordinary"], number, **about) for number in range(1, count + 1)]
    return report_source(JINJA, traces, 0.05, {"ettr_reference": "", "scorecard": ""}, "results/studies/a")


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_the_findings_fit_one_screen(count):
    text = page(count)
    findings = text[text.index("# Findings {#sec-findings}") : text.index("{{< include")]
    each = 1 if count > MOST_IN_FULL else 4
    assert len(re.findall(r"^- ", findings, re.MULTILINE)) == each * count
    assert len(re.findall(r"^\*\*made", findings, re.MULTILINE)) == count
    assert slips(findings) == []
    # Beside each other they are not higher than a screen.
    assert (".side-by-side}" in findings) == (1 < count <= MOST_IN_FULL)


@pytest.mark.parametrize(
    ("count", "says"), [(1, "The trace of this report is a"), (3, "The traces of this report are")]
)
def test_synthetic_data_are_called_so_once_on_top(count, says):
    text = page(count, synthetic=True)
    assert text.count("callout-warning") == 1
    assert f"**{says} synthetic sample{'s' if count > 1 else ''}.**" in text
    assert "callout" not in page(count)


def test_what_is_synthetic_beside_a_real_trace_is_named():
    traces = [made(CASES["ordinary"], number, synthetic=number > 1) for number in (1, 2, 3)]
    text = report_source(JINJA, traces, 0.05, {"ettr_reference": "", "scorecard": ""}, "results/studies/a")
    assert "**made&#95;2 and made&#95;3 are synthetic samples.**" in text


def in_words(metrics, section="findings"):
    """The findings of numbers at hand, in plain spaces."""
    trace = Made(
        "made",
        1,
        {"gives": "jobs", "unit": "job", "analyses": [], "synthetic": False} | {"metrics": metrics},
        Path(),
        {},
    )
    return told(section, trace).replace("\u00a0", " ").replace("&#160;", " ")


def test_a_run_that_cannot_be_estimated_has_no_number_on_the_first_screen():
    metrics = numbers_of(CASES["ordinary"])
    run = {"ettr.assumed.size_of_the_run": 1024, "ettr.unit": "GPUs", "ettr.assumed.failure_rate": 843.8}
    run |= {"ettr.withheld": "no cause is told", "ettr.needed": "causes"}
    for name, value in run.items():
        dict.__setitem__(metrics, name, {"value": value, "unit": "1", "n": 9, "source": "x"})
    text = in_words(metrics)
    assert "**What a run of 1,024 GPUs can expect cannot be estimated from this trace**: no cause is told" in text
    assert "What would tell: causes." in text
    assert "effective training" not in text and "interruptions" not in text and "843" not in text
    assert slips(text) == []


def test_bounds_come_before_a_mean_time_to_failure_that_ends_decide():
    def after(**more):
        metrics = Metrics()
        known = {"mttf.mttf_s": 1000.0, "mttf.ci_low_s": 900.0, "mttf.ci_high_s": 1100.0, "mttf.n": 50}
        known |= {"mttf.exposure_s": 20_000, "mttf.events": 20, "outcomes.ended": 40}
        for name, value in (known | more).items():
            metrics.put(name, value, "s", "x", 50)
        of_lives.of_mttf_range(metrics)
        found = [metrics.get(f"mttf.range.{end}", {}).get("value") for end in ("low_s", "high_s", "why")]
        return found, metrics

    assert after()[0] == [None] * 3
    few = {"without_end.share": 0.05, "without_end.mttf_low_s": 800.0, "without_end.mttf_high_s": 1500.0}
    assert after(**few)[0] == [None] * 3
    found, metrics = after(**few | {"without_end.share": 0.378})
    assert found == [800.0, 1500.0, "37.8% of the failures have no written end"]
    text = in_words(Numbers(metrics))
    bounds, estimate = text.index("lies between 13.3 min and 25.0 min"), text.index("as they stand, is 16.7 min")
    assert bounds < estimate
    assert after(**{"data.running_time_share": 0.969})[0][:2] == [pytest.approx(31.0), 1000.0]
    assert after(**{"outcomes.unknown.with_runtime": 30})[0][:2] == [400.0, 1000.0]
    assert after(**{"delayed_entry.mttf_s": 1099.0})[0] == [None] * 3
    assert after(**{"delayed_entry.mttf_s": 540.0})[0][:2] == [540.0, 1000.0]


def test_failures_without_any_end_are_no_absence_of_failures():
    text = told("findings", made(jobs(("failure", None), ("failure", None), ("success", 50))))
    assert "No failure was seen" not in text and "lies between" in text


def test_what_ended_with_no_result_recorded_bounds_the_share_of_failures():
    text = in_words(numbers_of(jobs(("failure", 10), ("success", 20), ("unknown", 30), ("unknown", 40))))
    assert "**50.0 % of 2 jobs that ended failed**" in text
    assert "Of 2 jobs more no result is recorded: among all that ended, between 25.0 % and 75.0 % failed." in text


def test_a_step_of_time_limits_in_the_survival_curve_is_said():
    rows = (
        [("failure", 3600)] * 30 + [("failure", 10 + n) for n in range(10)] + [("success", 5000 + n) for n in range(20)]
    )
    frame = jobs(*rows).with_columns(
        status_raw=pl.when(pl.col("runtime_s") == 3600).then(pl.lit("TIMEOUT")).otherwise(pl.lit("FAILED"))
    )
    metrics = numbers_of(frame)
    curves, _ = survival_tables(lives_of_jobs(frame), "failure", ["all"])
    steps = Metrics()
    of_lives.of_steps(steps, survival_steps(curves, frame))
    assert steps["survival.steps.time_s"]["value"] == 3600
    assert steps["survival.steps.drop"]["value"] == pytest.approx(30 / 60)
    assert steps["survival.steps.timeout_share"]["value"] == 1 and steps["survival.steps.failures"]["value"] == 30
    for name, about in steps.items():
        dict.__setitem__(metrics, name, about)
    text = in_words(metrics, "survival")
    assert steps["survival.limits.1.time_s"]["value"] == 3600 and "survival.limits.2.time_s" not in steps
    assert "The largest step of the curve is 50.0% at 1.00 h; time limits made 100.0% of its 30 failures" in text
