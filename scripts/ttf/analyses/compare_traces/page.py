"""The report's section on several traces side by side, from the tables, charts and numbers of rule compare_traces."""

import json
from collections.abc import Mapping
from pathlib import Path

import jinja2
import polars as pl

from ttf.analyses.compare_traces import ANALYSIS, FAILURE_SHARE, MTTF, QUEUEING, RUN_TIMES, TRACES
from ttf.analyses.compare_traces import OUTCOMES as COMPARED_OUTCOMES
from ttf.analyses.compare_traces.labels import COMPONENTS, ENDS, GPUS, OF_THE_WHOLE, reasons, trace_labels
from ttf.contract import Table
from ttf.jobs import OUTCOMES
from ttf.numbers.metrics import FEWEST_ENDED, FEWEST_FAILURES
from ttf.report import words
from ttf.report.blocks import Charts, Numbers, table_block
from ttf.report.tables import CLUSTERED, MEAN_OF_N, Interval, Mean, Shown
from ttf.tables import read_table

_MEASURES = {"jobs_share": "Share of GPU jobs", "gpu_hours_share": "Share of their GPU time"}


def comparison_section(jinja: jinja2.Environment, about: Mapping[str, Mapping], folder: Path, charts: Charts) -> str:
    """The .qmd of the section, from what rule compare_traces left in `folder`; its charts go to `charts`.

    about: of each trace of the study, in order, what the registry and the format say: unit, gives, synthetic, and
    title where there is one.
    """
    figures = json.loads((folder / "figures" / "index.json").read_text(encoding="utf-8"))
    metrics = Numbers(json.loads((folder / "metrics.json").read_text(encoding="utf-8")))
    contracts = {table.path.removesuffix(".csv"): table for table in ANALYSIS.tables if table is not TRACES}
    tables = {name: read_table(folder / contract.path, contract) for name, contract in contracts.items()}
    labels = trace_labels((trace, entry["synthetic"]) for trace, entry in about.items())
    html = tables_of(tables, about, labels, metrics)

    def chart_of(name: str) -> str:
        return charts.place(f"comparison-{name.replace('_', '-')}", folder, name, figures, "draw_charts_comparison")

    def table_of(name: str, caption: str) -> str:
        if name not in html:
            return ""
        file = f"comparison/{name}.csv" if name in tables else "comparison/metrics.json"
        return table_block(f"tbl-comparison-{name.replace('_', '-')}", html[name], caption, file)

    return jinja.get_template("compare_traces/comparison.qmd").render(
        m=metrics,
        chart=chart_of,
        table=table_of,
        has_chart=lambda name: not figures[name]["empty"],
        has_table=lambda name: name in html,
        at_limit=_at_limit(about, labels, metrics),
        blanks={name: _blanks(table, labels) for name, table in tables.items()},
        label_of=lambda trace: words.label(labels[trace]),
        synthetic=[labels[trace] for trace, entry in about.items() if entry["synthetic"]],
        jobs_called=_called(about, "jobs"),
        components_called=_called(about, "lives"),
        fewest={"ended": FEWEST_ENDED, "failures": FEWEST_FAILURES},
    )


def tables_of(
    tables: Mapping[str, pl.DataFrame], about: Mapping[str, Mapping], labels: Mapping[str, str], metrics: Numbers
) -> dict[str, str]:
    """The HTML tables of the section by name; a table in which nothing stands is left out."""
    named = {
        name: table.with_columns(trace=pl.col("trace").replace_strict(labels, return_dtype=pl.String))
        for name, table in tables.items()
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
        "traces": _traces(about, labels, metrics),
        "outcomes": Shown(outcomes, of_outcomes, COMPARED_OUTCOMES, "measure"),
        "run_times": Shown(run_times, _times(RUN_TIMES), RUN_TIMES, "outcome"),
        "queueing": Shown(_by_gpus(queueing), _times(QUEUEING), QUEUEING, "jobs_of"),
        "failure_share": Shown(shares, of_shares, FAILURE_SHARE, "jobs_of"),
        "mttf": Shown(_by_gpus(mttf.filter(confidence=0.95)), of_mttf, MTTF, "jobs_of"),
    }
    ids = {name: f"comparison-table-{name.replace('_', '-')}" for name in shown}
    return {name: table.html(ids[name]) for name, table in shown.items() if table.frame.height}


def _traces(about: Mapping[str, Mapping], labels: Mapping[str, str], metrics: Numbers) -> Shown:
    """What is compared of each trace: its unit, and for jobs how many there are and how many asked for a GPU."""
    counts = ("jobs", "gpu_jobs", "blank_request", "mttf_lives")
    rows = [
        {"trace": labels[trace], "title": entry.get("title"), "unit": entry["unit"]}
        | {name: metrics.value(f"of.{trace}.{name}", None) for name in counts}
        for trace, entry in about.items()
    ]
    schema = dict.fromkeys(("trace", "title", "unit"), pl.String) | dict.fromkeys(counts, pl.Int64)
    columns = dict.fromkeys(schema) | {"title": ("Title", None), "mttf_lives": ("Lives compared", words.count)}
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


def _at_limit(about: Mapping[str, Mapping], labels: Mapping[str, str], metrics: Numbers) -> str:
    """In which traces how many failures of GPU jobs came at a time limit, as literal Markdown; empty where none did."""
    counted = {trace: metrics.value(f"of.{trace}.timeouts", 0) for trace in about}
    said = (
        f"{labels[trace]}: {words.count(number)} of {words.count(metrics[f'of.{trace}.failures'])}"
        for trace, number in counted.items()
        if number
    )
    return words.markdown("; ".join(said))


def _called(about: Mapping[str, Mapping], gives: str) -> str:
    """What the units of the traces are called: `pod, task`."""
    return words.markdown(", ".join(dict.fromkeys(e["unit"] for e in about.values() if e["gives"] == gives)))
