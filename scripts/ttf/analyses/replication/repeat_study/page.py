"""Table of the published analyses and their job-level counterparts."""

import polars as pl

from ttf.analyses.replication.repeat_study import JOBS, STUDY1
from ttf.display.charts.text import FEATURE_NAMES
from ttf.display.report_tables import PageTable, merge_collinear_rows
from ttf.display.report_trace import Trace
from ttf.engine import words

MOST_TYPES = 12
_QUESTIONS = {
    "correlation": "Correlation with run time",
    "cut_off": "Correlation with run time, long runs left out",
    "mean_run_time": "Run time by GPU type",
}
LONGEST_CHANGE = 400


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return the questions with the study's answer and that at job level; those without any stay in the CSV only."""
    table = trace.table("study1")
    gpu_types = table.filter(question="mean_run_time").sort("study_n", descending=True, maintain_order=True)
    largest = gpu_types["value"].unique(maintain_order=True).head(MOST_TYPES)
    shown = table.filter((pl.col("question") != "mean_run_time") | pl.col("value").is_in(largest.implode()))
    rows = [
        {
            "question": _QUESTIONS[row["question"]],
            "feature": words.shorten(row["value"]) if row["value"] is not None else _name_feature(row),
            **{source: _format_estimate(row, source) for source in ("study", "asked")},
            "outcome": JOBS[row["outcome"]],
            **{name: row[name] for name in ("study_n", "asked_n", "change")},
        }
        for row in shown.iter_rows(named=True)
        if row["study_estimate"] is not None or row["asked_estimate"] is not None
    ]
    columns = {
        "feature": ("Feature", None),
        "outcome": ("Jobs", None),
        "study": ("Published method, our data", None),
        "study_n": ("n", words.count),
        "asked": ("Job-level, censored", None),
        "asked_n": ("n", words.count),
        "change": ("What changes", None),
    }
    frame = pl.DataFrame(rows, schema_overrides={"study": pl.String, "asked": pl.String}, infer_schema_length=None)
    frame = merge_collinear_rows(frame, "feature") if rows else frame
    return {"study1": PageTable(frame, columns, STUDY1, "question", LONGEST_CHANGE)}


def _name_feature(row: dict) -> str:
    name = FEATURE_NAMES[row["feature"]]
    return name if row["cutoff_s"] is None else f"{name}, below {row['cutoff_s']:,} s"


def _format_estimate(row: dict, source: str) -> str | None:
    """Format an estimate with interval and p: the study's, or that at job level (`asked`) with the clustered ones."""
    suffix = "" if source == "study" else "_clustered"
    value, low, high = (row[f"{source}_{name}"] for name in ("estimate", f"ci_low{suffix}", f"ci_high{suffix}"))
    if value is None:
        return None
    format_value = words.duration if row["question"] == "mean_run_time" else words.coefficient
    text = format_value(value)
    if low is not None and high is not None:
        bounds = (
            words.in_common_unit(value, low, high)
            if format_value is words.duration
            else [format_value(low), format_value(high)]
        )
        unit = words.NO_BREAK + text.rpartition(words.NO_BREAK)[2]
        if all(bound.endswith(unit) for bound in bounds):
            bounds = [bound.removesuffix(unit) for bound in bounds]
        # A line may end before the interval, not in it.
        text += f" [{f',{words.NO_BREAK}'.join(bounds)}]"
    p = row["study_p"] if source == "study" else row["asked_p_adjusted_clustered"]
    return text if p is None else f"{text}, p {words.p_value(p)}"
