"""Part of the page that compares traces: the tables of rule compare_traces, and the context of its template."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.analyses.comparison.compare_traces import ANALYSIS, FAILURE_SHARE, MTTF, QUEUEING, RUN_TIMES, TRACES
from ttf.analyses.comparison.compare_traces import OUTCOMES as COMPARED_OUTCOMES
from ttf.analyses.comparison.compare_traces.trace_labels import (
    GPUS,
    RUN_ENDS,
    TRACE_REASONS,
    list_reasons,
    sort_by_size,
    trace_labels,
)
from ttf.display.report_tables import CLUSTERED, MEAN_OF_N, Formatter, Interval, Mean, PageTable
from ttf.display.report_trace import Trace
from ttf.engine import words
from ttf.engine.contract import Table
from ttf.records.jobs import OUTCOMES

_MEASURES = {"jobs_share": "Share of jobs", "gpu_hours_share": "Share of their GPU time"}


def tables(compared: Trace, traces: Sequence[Trace]) -> dict[str, PageTable]:
    """Return the tables by name, without empty ones. compared: the products of the analysis."""
    labels = _label_traces(traces)
    labelled = {
        name: compared.table(f"compared_{name}").with_columns(
            trace=pl.col("trace").replace_strict(labels, return_dtype=pl.String)
        )
        for name in ("outcomes", "run_times", "queueing", "failure_share", "mttf")
    }
    outcomes = _outcome_columns(labelled["outcomes"])
    outcome_columns: dict[str, tuple[str, Formatter | None]] = {"trace": ("Trace", None), "n": ("n", words.count)}
    outcome_columns |= {outcome: (outcome, words.share) for outcome in outcomes.columns if outcome in OUTCOMES}
    run_times, queueing, mttf = (labelled[name].filter(pl.col("n") > 0) for name in ("run_times", "queueing", "mttf"))
    run_times = run_times.sort(pl.col("outcome").cast(pl.Enum(RUN_ENDS)), maintain_order=True)
    shares = sort_by_size(labelled["failure_share"].filter(pl.col("ended") > 0))
    share_columns = {"trace": None, "ended": None, "failures": None, "failure_share": CLUSTERED}
    mttf_columns = dict.fromkeys(("trace", "unit", "n", "events", "without_end", "exposure_s"))
    mttf_columns["mttf_s"] = Interval(low="ci_low_clustered_s", high="ci_high_clustered_s")
    mttf_columns["failures_per_1000_gpu_days"] = None
    shown = {
        "traces": _traces_table(traces, labels, compared),
        "outcomes": PageTable(outcomes, outcome_columns, COMPARED_OUTCOMES, "measure"),
        "run_times": PageTable(run_times, _time_columns(RUN_TIMES), RUN_TIMES, "outcome"),
        "queueing": PageTable(_sort_by_bucket(queueing), _time_columns(QUEUEING), QUEUEING, "jobs_of"),
        "failure_share": PageTable(shares, share_columns, FAILURE_SHARE, "jobs_of"),
        "mttf": PageTable(sort_by_size(mttf.filter(confidence=0.95)), mttf_columns, MTTF, "jobs_of"),
    }
    return {name: table for name, table in shown.items() if table.frame.height}


def context(compared: Trace, traces: Sequence[Trace]) -> dict:
    """Return texts for the template: failures at a time limit, and reasons for blanks by table."""
    labels = _label_traces(traces)
    components = [trace.info["unit"] for trace in traces if not trace.has_jobs]
    tables_by_name = {table.name.removeprefix("compared_"): compared.table(table.name) for table in ANALYSIS.tables[1:]}
    return {
        "at_limit": _list_timeouts(traces, labels, compared),
        "blanks": {name: _list_blanks(table, labels) for name, table in tables_by_name.items()},
        "components_called": words.markdown(", ".join(dict.fromkeys(components))),
    }


def _label_traces(traces: Sequence[Trace]) -> dict[str, str]:
    return trace_labels((trace.name, trace.info["synthetic"]) for trace in traces)


def _traces_table(traces: Sequence[Trace], labels: Mapping[str, str], compared: Trace) -> PageTable:
    counts = ("jobs", "gpu_jobs", "mttf_durations")
    rows = [
        {"trace": labels[trace.name], "title": trace.info.get("title"), "unit": trace.info["unit"]}
        | {name: compared.metrics.value(f"of.{trace.name}.{name}", None) for name in counts}
        for trace in traces
    ]
    schema = dict.fromkeys(("trace", "title", "unit"), pl.String) | dict.fromkeys(counts, pl.Int64)
    columns = dict.fromkeys(schema) | {"title": ("Title", None), "mttf_durations": ("At risk", words.count)}
    return PageTable(pl.DataFrame(rows, schema=schema), columns, TRACES)


def _outcome_columns(table: pl.DataFrame) -> pl.DataFrame:
    """Return a row per measure and trace, with a column per outcome; n: jobs behind the share."""
    nonempty = table.filter(pl.col("jobs") > 0)
    outcomes = [outcome for outcome in OUTCOMES if (nonempty["outcome"] == outcome).any()]
    rows = []
    for measure, heading in _MEASURES.items():
        n = "jobs" if measure == "jobs_share" else "n"
        for (trace,), part in table.group_by(["trace"], maintain_order=True):
            if part[measure].count():
                shares = dict(part.select("outcome", measure).iter_rows())
                row = {"measure": heading, "trace": trace, "n": part[n].sum()}
                rows.append(row | {name: shares[name] for name in outcomes})
    schema = {"measure": pl.String, "trace": pl.String, "n": pl.Int64} | dict.fromkeys(outcomes, pl.Float64)
    return pl.DataFrame(rows, schema=schema)


def _sort_by_bucket(table: pl.DataFrame) -> pl.DataFrame:
    jobs_of = pl.col("gpus").replace_strict(GPUS, return_dtype=pl.String)
    return table.with_columns(jobs_of=jobs_of).sort(jobs_of.cast(pl.Enum(list(GPUS.values()))), maintain_order=True)


def _time_columns(contract: Table) -> dict[str, Mean | None]:
    columns = ("trace", "n", *(column for column in contract.columns if column.endswith("_s")))
    return {column: MEAN_OF_N if column == "mean_s" else None for column in columns}


def _list_blanks(table: pl.DataFrame, labels: Mapping[str, str]) -> str:
    """List the traces that lack numbers for a reason of the whole trace or its format, as literal Markdown."""
    labels_by_reason: dict[str, list[str]] = {}
    for trace, reason in list_reasons(table):
        if reason.startswith(TRACE_REASONS):
            labels_by_reason.setdefault(reason, []).append(labels[trace])
    return words.markdown("; ".join(f"{', '.join(names)}: {reason}" for reason, names in labels_by_reason.items()))


def _list_timeouts(traces: Sequence[Trace], labels: Mapping[str, str], compared: Trace) -> str:
    """List the failures at a time limit by trace, as literal Markdown; empty if there are none."""
    m = compared.metrics
    timeouts_by_trace = {trace.name: m.value(f"of.{trace.name}.timeouts", 0) for trace in traces}
    clauses = (
        f"{labels[name]}: {words.count(timeouts)} of {words.count(m[f'of.{name}.failures'])}"
        for name, timeouts in timeouts_by_trace.items()
        if timeouts
    )
    return words.markdown("; ".join(clauses))
