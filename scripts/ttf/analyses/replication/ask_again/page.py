"""The table of published analyses, repeated."""

import polars as pl

from ttf.analyses.replication.ask_again import STUDY1
from ttf.display.charts.text import FEATURE_NAMES
from ttf.display.report_tables import Shown
from ttf.display.report_trace import Trace
from ttf.engine import words

MOST_TYPES = 12
_QUESTIONS = {
    "correlation": "Correlation with run time",
    "cut_off": "Correlation with run time, long runs left out",
    "mean_run_time": "Run time by GPU type",
}
LONGEST_CHANGE = 400


def tables(trace: Trace) -> dict[str, Shown]:
    """The study's questions, each answered twice, and what changes; those with no answer either way stay in the CSV."""
    table = trace.table("study1")
    types = table.filter(question="mean_run_time").sort("study_n", descending=True, maintain_order=True)
    largest = types["value"].unique(maintain_order=True).head(MOST_TYPES)
    shown = table.filter((pl.col("question") != "mean_run_time") | pl.col("value").is_in(largest.implode()))
    rows = [
        {
            "question": _QUESTIONS[row["question"]],
            "feature": words.shorten(row["value"]) if row["value"] is not None else _feature(row),
            **{way: _estimate(row, way) for way in ("study", "asked")},
            **{name: row[name] for name in ("outcome", "study_n", "asked_n", "change")},
        }
        for row in shown.iter_rows(named=True)
        if row["study_estimate"] is not None or row["asked_estimate"] is not None
    ]
    columns = {
        "feature": ("Of", None),
        "outcome": ("Outcome", None),
        "study": ("As published", None),
        "study_n": ("n", words.count),
        "asked": ("Job-level, censored", None),
        "asked_n": ("n", words.count),
        "change": ("What changes", None),
    }
    frame = pl.DataFrame(rows, schema_overrides={"study": pl.String, "asked": pl.String}, infer_schema_length=None)
    return {"study1": Shown(frame, columns, STUDY1, "question", LONGEST_CHANGE)}


def _feature(row: dict) -> str:
    name = FEATURE_NAMES[row["feature"]]
    return name if row["cutoff_s"] is None else f"{name}, below {row['cutoff_s']:,} s"


def _estimate(row: dict, way: str) -> str | None:
    """The estimate with its interval, and p: the study's own, or the clustered ones."""
    of = "" if way == "study" else "_clustered"
    value, low, high = (row[f"{way}_{name}"] for name in ("estimate", f"ci_low{of}", f"ci_high{of}"))
    if value is None:
        return None
    worded = words.duration if row["question"] == "mean_run_time" else words.coefficient
    text = worded(value)
    if low is not None and high is not None:
        ends = words.alike(value, low, high) if worded is words.duration else [worded(low), worded(high)]
        unit = words.NO_BREAK + text.rpartition(words.NO_BREAK)[2]
        if all(end.endswith(unit) for end in ends):
            ends = [end.removesuffix(unit) for end in ends]
        # A line may end before the interval, not in it.
        text += f" [{f',{words.NO_BREAK}'.join(ends)}]"
    p = row["study_p"] if way == "study" else row["asked_p_adjusted_clustered"]
    return text if p is None else f"{text}, p {words.p_value(p)}"
