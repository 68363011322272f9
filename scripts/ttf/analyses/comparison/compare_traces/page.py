"""The fold of the page that compares traces: the tables of rule compare_traces, and what its template needs."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.analyses.comparison.compare_traces import ANALYSIS, FAILURE_SHARE, MTTF, QUEUEING, RUN_TIMES, TRACES
from ttf.analyses.comparison.compare_traces import OUTCOMES as COMPARED_OUTCOMES
from ttf.analyses.comparison.compare_traces.trace_labels import (
    COMPONENTS,
    ENDS,
    GPUS,
    OF_THE_WHOLE,
    reasons,
    trace_labels,
)
from ttf.display.report_tables import CLUSTERED, MEAN_OF_N, Interval, Mean, Shown
from ttf.display.report_trace import Trace
from ttf.engine import words
from ttf.engine.contract import Table
from ttf.records.jobs import OUTCOMES

_MEASURES = {"jobs_share": "Share of GPU jobs", "gpu_hours_share": "Share of their GPU time"}


def tables(compared: Trace, traces: Sequence[Trace]) -> dict[str, Shown]:
    """The tables by name; one in which nothing stands is left out. compared: the products of the room."""
    labels = _labels(traces)
    named = {
        name: compared.table(f"compared_{name}").with_columns(
            trace=pl.col("trace").replace_strict(labels, return_dtype=pl.String)
        )
        for name in ("outcomes", "run_times", "queueing", "failure_share", "mttf")
    }
    outcomes = _outcomes_side_by_side(named["outcomes"])
    of_outcomes = {"trace": ("Trace", None), "n": ("n", words.count)}
    of_outcomes |= {outcome: (outcome, words.share) for outcome in outcomes.columns if outcome in OUTCOMES}
    run_times, queueing, mttf = (named[name].filter(pl.col("n") > 0) for name in ("run_times", "queueing", "mttf"))
    run_times = run_times.sort(pl.col("outcome").cast(pl.Enum(ENDS)), maintain_order=True)
    shares = _by_gpus(named["failure_share"].filter(pl.col("ended") > 0))
    of_shares = {"trace": None, "ended": None, "failures": None, "failure_share": CLUSTERED}
    of_mttf = dict.fromkeys(("trace", "unit", "n", "events", "without_end", "exposure_s"))
    of_mttf["mttf_s"] = Interval(low="ci_low_clustered_s", high="ci_high_clustered_s")
    of_mttf["failures_per_1000_gpu_days"] = None
    shown = {
        "traces": _traces(traces, labels, compared),
        "outcomes": Shown(outcomes, of_outcomes, COMPARED_OUTCOMES, "measure"),
        "run_times": Shown(run_times, _times(RUN_TIMES), RUN_TIMES, "outcome"),
        "queueing": Shown(_by_gpus(queueing), _times(QUEUEING), QUEUEING, "jobs_of"),
        "failure_share": Shown(shares, of_shares, FAILURE_SHARE, "jobs_of"),
        "mttf": Shown(_by_gpus(mttf.filter(confidence=0.95)), of_mttf, MTTF, "jobs_of"),
    }
    return {name: table for name, table in shown.items() if table.frame.height}


def context(compared: Trace, traces: Sequence[Trace]) -> dict:
    """What the template says beside its tables and charts."""
    labels = _labels(traces)
    components = [trace.about["unit"] for trace in traces if not trace.has_jobs]
    left_blank = {table.name.removeprefix("compared_"): compared.table(table.name) for table in ANALYSIS.tables[1:]}
    return {
        "at_limit": _at_limit(traces, labels, compared),
        "blanks": {name: _blanks(table, labels) for name, table in left_blank.items()},
        "components_called": words.markdown(", ".join(dict.fromkeys(components))),
    }


def _labels(traces: Sequence[Trace]) -> dict[str, str]:
    return trace_labels((trace.name, trace.about["synthetic"]) for trace in traces)


def _traces(traces: Sequence[Trace], labels: Mapping[str, str], compared: Trace) -> Shown:
    """What is compared of each trace: its unit, and for jobs how many there are and how many requested a GPU."""
    counts = ("jobs", "gpu_jobs", "blank_request", "mttf_lives")
    m = compared.metrics
    rows = [
        {"trace": labels[trace.name], "title": trace.about.get("title"), "unit": trace.about["unit"]}
        | {name: m.value(f"of.{trace.name}.{name}", None) for name in counts}
        for trace in traces
    ]
    schema = dict.fromkeys(("trace", "title", "unit"), pl.String) | dict.fromkeys(counts, pl.Int64)
    columns = dict.fromkeys(schema) | {"title": ("Title", None), "mttf_lives": ("At risk", words.count)}
    return Shown(pl.DataFrame(rows, schema=schema), columns, TRACES)


def _outcomes_side_by_side(table: pl.DataFrame) -> pl.DataFrame:
    """A row per measure and trace, a column per outcome that any trace has; n: the jobs behind the share."""
    known = table.filter(pl.col("jobs") > 0)
    present = [outcome for outcome in OUTCOMES if (known["outcome"] == outcome).any()]
    rows = []
    for measure, heading in _MEASURES.items():
        n = "jobs" if measure == "jobs_share" else "n"
        for (trace,), part in table.group_by(["trace"], maintain_order=True):
            if part[measure].count():
                shares = dict(part.select("outcome", measure).iter_rows())
                row = {"measure": heading, "trace": trace, "n": part[n].sum()}
                rows.append(row | {name: shares[name] for name in present})
    schema = {"measure": pl.String, "trace": pl.String, "n": pl.Int64} | dict.fromkeys(present, pl.Float64)
    return pl.DataFrame(rows, schema=schema)


def _by_gpus(table: pl.DataFrame) -> pl.DataFrame:
    """The rows by number of GPUs, components last, with words for it in `jobs_of`."""
    jobs_of = pl.col("gpus").replace_strict(GPUS, return_dtype=pl.String)
    if "gives" in table.columns:
        jobs_of = pl.when(gives="lives").then(pl.lit(COMPONENTS)).otherwise(jobs_of)
    order = pl.Enum([*GPUS.values(), COMPONENTS])
    return table.with_columns(jobs_of=jobs_of).sort(pl.col("jobs_of").cast(order), maintain_order=True)


def _times(contract: Table) -> dict[str, Mean | None]:
    """The columns of a table of means and quantiles of a time."""
    columns = ("trace", "n", *(column for column in contract.columns if column.endswith("_s")))
    return {column: MEAN_OF_N if column.endswith("_mean_s") else None for column in columns}


def _blanks(table: pl.DataFrame, labels: Mapping[str, str]) -> str:
    """Which traces lack numbers of a table for a reason of the whole trace or of its format, as literal Markdown."""
    traces: dict[str, list[str]] = {}
    for trace, reason in reasons(table):
        if reason.startswith(OF_THE_WHOLE):
            traces.setdefault(reason, []).append(labels[trace])
    return words.markdown("; ".join(f"{', '.join(names)}: {reason}" for reason, names in traces.items()))


def _at_limit(traces: Sequence[Trace], labels: Mapping[str, str], compared: Trace) -> str:
    """In which traces how many failures of GPU jobs came at a time limit, as literal Markdown; empty where none did."""
    m = compared.metrics
    counted = {trace.name: m.value(f"of.{trace.name}.timeouts", 0) for trace in traces}
    said = (
        f"{labels[name]}: {words.count(number)} of {words.count(m[f'of.{name}.failures'])}"
        for name, number in counted.items()
        if number
    )
    return words.markdown("; ".join(said))
