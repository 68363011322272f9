"""The findings on top of the page and the sections that every trace has: in good English for any jobs."""

import re
from pathlib import Path

import polars as pl
import pytest
from prose import slips
from ttf.jobs import JOB_COLUMNS, NODE_COLUMNS
from ttf.lives import lives_of_jobs
from ttf.numbers import jobs as of_jobs
from ttf.numbers import lives as of_lives
from ttf.numbers.metrics import Metrics
from ttf.outcomes import outcome_table
from ttf.report.blocks import Numbers
from ttf.report.source import MOST_IN_FULL, environment, report_source
from ttf.report.trace import Trace
from ttf.stats.lifetimes import lifetime_models
from ttf.stats.mttf import failures_without_end, mean_time_to_failure
from ttf.stats.survival import survival_tables

ROOT = Path(__file__).resolve().parents[2]
JINJA = environment(ROOT / "report")
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
    of_jobs.of_jobs(metrics, frame, pl.DataFrame(schema=NODE_COLUMNS))
    of_jobs.of_outcomes(metrics, outcome_table(frame))
    of_jobs.of_median_run_times(metrics, frame)
    lives = lives_of_jobs(frame)
    curves, summary = survival_tables(lives, "failure", ["all"])
    of_lives.of_survival(metrics, summary, curves)
    mttf = mean_time_to_failure(lives, "failure", ["all"])
    of_lives.of_mttf(metrics, mttf, failures_without_end(lives, "failure", ["all"]))
    of_lives.of_models(metrics, lifetime_models(lives, "failure", ["all"]))
    return Numbers(metrics)


class Made(Trace):
    """A trace whose numbers are at hand."""

    @property
    def metrics(self):
        return self.about["metrics"]


def made(frame, number=1, **about):
    about = {"gives": "jobs", "unit": "job", "analyses": [], "synthetic": False, "parts": 0, "format": "table"} | about
    return Made(f"made_{number}", number, about | {"metrics": numbers_of(frame)}, Path())


def told(section, trace):
    text = JINJA.get_template(f"sections/{section}.qmd").render(
        trace=trace,
        id=trace.id,
        unit=trace.about["unit"],
        m=trace.metrics,
        chart=lambda name: "",
        table=lambda name, caption: "",
        has_chart=lambda name: False,
        has_table=lambda name: False,
        strata=[],
        features=[],
        most_strata=12,
        most_parts=20,
    )
    assert not re.search(r"^(@sec|\(@)", text, re.MULTILINE)
    return text


@pytest.mark.parametrize("section", ["findings", "findings_in_a_line", "data", "outcomes", "run_times", "survival"])
@pytest.mark.parametrize("case", CASES)
def test_any_jobs_are_told_in_good_english(section, case):
    text = told(section, made(CASES[case]))
    assert slips(text) == []
    if section == "findings":
        found = re.findall(r"^- ", text, re.MULTILINE)
        assert 1 <= len(found) <= 5
        assert len(re.findall("@sec-t1-", text)) == len(found), "each says where it is from"
        assert all(line.startswith("- **") for line in text.splitlines() if line.strip())


def test_findings_in_words():
    def findings(case):
        return told("findings", made(CASES[case])).replace("\u00a0", " ")

    assert "**The one job that ended did not fail** (95 % interval 0.0 % to 79.3 %; @sec-t1-outcomes)." in findings(
        "one success"
    )
    assert "**All 20 jobs that ended failed**" in findings("no successes")
    assert "**None of 2 jobs that ended failed**" in findings("no failures")
    assert "**No failure was seen** in " in findings("no failures")
    assert "; 1 failure without a written end is left out." in findings("failures without an end")
    assert "**No job of this trace has ended**" in findings("all waiting")
    for case, said in (
        ("one failure", "The one job that ended failed"),
        ("no successes", "All 20 jobs that ended failed"),
    ):
        assert f"**{said}** (95 %" in told("findings_in_a_line", made(CASES[case]))
    ordinary = findings("ordinary")
    # Of 20 failures the median lies between the 6th and the 15th: 50 + (1 + 3 n)² s.
    assert "(95 % interval 5.10 min to 31.6 min), half of the successes" in ordinary


def page(count, **about):
    traces = [made(CASES["ordinary"], number, **about) for number in range(1, count + 1)]
    return report_source(JINJA, traces, 0.05, {"ettr_reference": "", "scorecard": ""})


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
    text = report_source(JINJA, traces, 0.05, {"ettr_reference": "", "scorecard": ""})
    assert "**made&#95;2 and made&#95;3 are synthetic samples.**" in text
