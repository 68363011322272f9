"""The report's .qmd source: templates under report/ filled in with the metrics, tables and charts of every trace.

The templates are Jinja with <% %> and << >>, because {{< >}} is Quarto's. What they leave is plain .qmd,
which Quarto and Pandoc both render.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import jinja2
import polars as pl

from ttf.report import words
from ttf.report.analyses import ANALYSES
from ttf.report.blocks import Charts, Numbers, table_block
from ttf.report.tables import Interval, Mean, html_table
from ttf.report.themes import themes_of
from ttf.report.trace import MOST_STRATA, Trace, largest_strata, strata_in_words
from ttf.tables import read_csv

# What the features are called in a sentence.
FEATURE_WORDS = {
    "gpu_type": "GPU type",
    "gpu_request": "GPU request",
    "cpu_request": "CPU request",
    "memory_request": "memory request",
    "size": "number of instances",
    "gpu_utilisation": "measured GPU utilisation",
    "cpu_usage": "measured CPU use",
    "memory_usage": "measured memory use",
}
# Traces whose findings stand in full on top of the page; of more, a line each on top and the rest in their chapters.
MOST_IN_FULL = 3
# Parts of a trace in the table of its rows: the newest.
MOST_PARTS = 20
FEATURE_UNITS = {
    "gpu_request": " % of a GPU",
    "cpu_request": " % of a core",
    "memory_request": " GiB",
    "gpu_utilisation": " % of a GPU",
    "cpu_usage": " % of a core",
    "memory_usage": " GiB",
}


def environment(templates: Path) -> jinja2.Environment:
    """Jinja set up for .qmd. An undefined name is an error: a number must not go missing in silence."""
    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # a heading needs the blank line before it, also after an include
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # the output is Markdown; texts go through the filters md and label
    )
    jinja.filters |= {
        "md": words.markdown,
        "label": words.label,
        "count": words.count,
        "number": words.number,
        "share": words.share,
        "duration": words.duration,
        "until": words.until,
        "plural": words.plural,
        "p_value": words.p_value,
        "part": words.part,
        "wait": words.wait,
        "typst_strings": words.typst_strings,
    }
    return jinja


def trace_source(
    jinja: jinja2.Environment,
    trace: Trace,
    cutoffs_s: list[int],
    charts: Charts,
    rules: Mapping[str, str],
    traces: int = 1,
) -> str:
    """The .qmd of one trace of a study of so many.

    rules: index of charts -> the rule that drew them; the charts go to `charts`.
    """
    figures, drawn_by = {}, {}
    for index in ("index.json", *(f"{name}.index.json" for name in trace.analyses)):
        found = json.loads((trace.folder / "figures" / index).read_text(encoding="utf-8"))
        figures |= found
        drawn_by |= dict.fromkeys(found, rules[index])
    tables = _tables(trace)
    metrics = trace.metrics

    def chart(name: str) -> str:
        return charts.place(f"{trace.id}-{name.replace('_', '-')}", trace.folder, name, figures, drawn_by[name])

    def table(name: str, caption: str) -> str:
        html = tables.get(name)
        return table_block(f"tbl-{trace.id}-{name}", html, caption, trace.file_of(name)) if html else ""

    def value_of(feature: str, value: str) -> str:
        return words.label(words.grouped(value) + FEATURE_UNITS.get(feature, ""))

    return jinja.get_template("trace.qmd").render(
        trace=trace,
        themes=themes_of(trace),
        findings_here=traces > MOST_IN_FULL,
        id=trace.id,
        unit=trace.about["unit"],
        m=metrics,
        chart=chart,
        table=table,
        has_chart=lambda name: name in figures and not figures[name]["empty"],
        has_table=lambda name: name in tables,
        strata=[name.removeprefix("survival_by_") for name in figures if name.startswith("survival_by_")],
        logrank=[key.split(".")[1] for key in metrics if key.startswith("logrank.") and key.endswith(".strata")],
        features=[
            (name, words_)
            for name, words_ in FEATURE_WORDS.items()
            if metrics.has(f"failure_share.{name}.highest.value")
        ],
        value_of=value_of,
        verdicts={outcome: _verdicts(metrics, outcome, trace.about["unit"]) for outcome in ("success", "failure")},
        cutoffs=", ".join(words.count(cutoff) + " s" for cutoff in cutoffs_s) or "none",
        most_strata=MOST_STRATA,
        most_parts=MOST_PARTS,
    )


def report_source(
    jinja: jinja2.Environment, traces: list[Trace], significance: float, sections: Mapping[str, str]
) -> str:
    """The .qmd of the page, which includes one per trace; `sections` of the whole study: comparison, scorecard."""
    return jinja.get_template("report.qmd").render(
        traces=traces,
        most_in_full=MOST_IN_FULL,
        versions=_versions(),
        significance=f"{significance:g}",
        comparison=sections.get("comparison", ""),
        ettr_reference=sections["ettr_reference"],
        scorecard=sections["scorecard"],
    )


def _versions() -> str:
    """The packages that the numbers and the charts come from; the manifest has them all."""
    names = ("Snakemake", "Polars", "NumPy", "SciPy", "Altair", "Great Tables")
    *most, last = (f"{name} {version(name.replace(' ', '-'))}" for name in names)
    return f"{', '.join(most)} and {last}"


def _verdicts(metrics: Numbers, outcome: str, unit: str) -> list[str]:
    """What the correlations say: a sentence for each feature that goes with the mean run time, one for all others."""
    told, untold = [], []
    for feature, name in FEATURE_WORDS.items():
        means, jobs = (f"correlations.{outcome}.{feature}.{kind}" for kind in ("group_mean", "job"))
        if not metrics.has(f"{means}.estimate"):
            continue
        r = metrics[f"{means}.estimate"]
        figures = f"r = {words.coefficient(r)}, n = {words.count(metrics.n(f'{means}.estimate'))} values"
        if metrics.has(f"{means}.p_adjusted"):
            figures += f", adjusted p {words.p_value(metrics[f'{means}.p_adjusted'])}"
        if not metrics.value(f"{means}.reject", False):
            untold.append(f"{name} ({figures})")
            continue
        sentence = f"The mean run time {'rises' if r > 0 else 'falls'} with the {name} ({figures})"
        if metrics.has(f"{jobs}.estimate"):
            rho = metrics[f"{jobs}.estimate"]
            sentence += (
                f"; {unit} by {unit} there is {words.strength(rho)} rank correlation "
                f"(ρ = {words.coefficient(rho)}, n = {words.count(metrics.n(f'{jobs}.estimate'))})"
            )
        told.append(f"{sentence}.")
    if untold:
        told.append(f"No correlation that could be told from chance: {'; '.join(untold)}.")
    return [words.markdown(sentence) for sentence in told]


def _tables(trace: Trace) -> dict[str, str]:
    """The HTML tables of a trace by name; a table with nothing in it is left out."""

    def identifier(name: str) -> str:
        return f"{trace.id}-table-{name}"

    account = read_csv(trace.folder / "quality" / "row_account.csv")
    tables = _tables_of_jobs(trace, identifier) if trace.has_jobs else {}
    tables |= {
        "rows": html_table(
            account,
            {
                "table": ("Table", None),
                "rows_read": ("Rows read", words.count),
                "rows_kept": ("kept", words.count),
                "rows_quarantined": ("put aside", words.count),
            },
            identifier("rows"),
        ),
    }
    if trace.about["parts"] > 1:
        by_part = read_csv(trace.folder / "quality" / "row_account_by_part.csv")
        newest = by_part["part"].unique(maintain_order=True).tail(MOST_PARTS)
        tables["parts"] = html_table(
            by_part.filter(pl.col("part").is_in(newest.implode())),
            {
                "part": ("Part", None),
                "table": ("Table", None),
                "rows_read": ("Rows read", words.count),
                "rows_kept": ("kept", words.count),
                "rows_quarantined": ("put aside", words.count),
            },
            identifier("parts"),
        )
    tables |= _tables_of_quality(trace, identifier)
    for name in trace.analyses:
        tables |= ANALYSES[name](trace, identifier)
    mttf = trace.table("mttf").filter(pl.col("confidence") == 0.95)
    causes = mttf.filter((pl.col("stratum_by") == "all") & (pl.col("event") != "failure"))
    if causes.height:
        columns = {
            "event": ("Cause", None),
            "n": ("n", words.count),
            "events": ("Failures", words.count),
            "mttf_s": Interval("Mean time to failure", words.duration, "ci_low_s", "ci_high_s"),
        }
        tables["causes"] = html_table(causes, columns, identifier("causes"))
    mttf = mttf.filter(pl.col("event") == "failure")
    if mttf.height:
        columns = {
            "stratum": ("Lives", None),
            "n": ("n", words.count),
            "events": ("Failures", words.count),
            "exposure_s": ("Time at risk", words.duration),
            "mttf_s": Interval("Mean time to failure", words.duration, "ci_low_s", "ci_high_s"),
            "failures_per_1000_gpu_days": ("Failures per 1000 GPU-days", words.number),
        }
        shown = strata_in_words(largest_strata(mttf))
        tables["mttf"] = html_table(shown, columns, identifier("mttf"), group="stratum_by")
    return tables


def _tables_of_quality(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """What was wrong with the raw tables and what to do about it, what they hold, and what moved."""
    tables = {}
    anomalies = read_csv(trace.folder / "quality" / "anomalies.csv")
    if anomalies.height:
        columns = {
            "table": ("Table", None),
            "code": ("Code", None),
            "sentence": ("What is wrong", None),
            "rows": ("Rows", words.count),
            "share": ("Share of the table", words.share),
            "first_lines": ("Lines", None),
            "suggestion": ("Suggestion", None),
        }
        tables["suggestions"] = html_table(anomalies, columns, identifier("suggestions"), longest=200)
    validation = read_csv(trace.folder / "quality" / "validation.csv")
    found = validation.filter((pl.col("rows_failed") != 0) | pl.col("rows_failed").is_null())
    if found.height:
        columns = {name: (name.replace("_", " ").capitalize(), None) for name in found.columns}
        tables["validation"] = html_table(found, columns, identifier("validation"), longest=200)
    statistics = read_csv(trace.folder / "quality" / "statistics.csv")
    if statistics.height:
        columns = {
            "column": ("Column", None),
            "type": ("Type", None),
            "rows": ("Rows", words.count),
            "blank_share": ("Blank", words.share),
            "distinct": ("Distinct", words.count),
            "minimum": ("Smallest", str),
            "middle": ("Median", str),
            "maximum": ("Largest", str),
        }
        told = {
            name: [_raw_value(*row) for row in statistics.select("type", name).iter_rows()]
            for name in ("minimum", "middle", "maximum")
        }
        statistics = statistics.with_columns(pl.Series(name, cells, dtype=pl.String) for name, cells in told.items())
        tables["statistics"] = html_table(statistics, columns, identifier("statistics"), group="table")
    return tables


def _raw_value(kind: str, value: float | None) -> str | None:
    """A value of a raw table by the type of its column: a time (s since 1970) as a moment, a count whole."""
    if value is None:
        return None
    if kind == "time":
        return datetime.fromtimestamp(value, UTC).strftime(f"%Y-%m-%d{words.NO_BREAK}%H:%M")
    return words.count(value) if kind in ("seconds", "count") else words.number(value)


def _tables_of_jobs(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """The tables that only a trace of jobs has."""
    limited = trace.table("outcomes")["at_time_limit"].sum() > 0
    at_limit = {"at_time_limit": ("At time limit", words.count)} if limited else {}
    tables = {
        "outcomes": html_table(
            trace.table("outcomes"),
            {
                "outcome": ("Outcome", None),
                "jobs": (f"{trace.about['unit'].capitalize()}s", words.count),
                "jobs_share": ("Share", words.share),
                "gpu_hours": ("GPU hours", words.number),
                "gpu_hours_share": ("Share", words.share),
                "n": ("n", words.count),
                "runtime_mean_s": Mean("Mean run time", words.duration, "n"),
                "runtime_median_s": ("Median", words.duration),
                "runtime_p90_s": ("90th percentile", words.duration),
                **at_limit,
            },
            identifier("outcomes"),
        ),
    }
    agreement = trace.table("runtime_agreement")
    if agreement["n"].sum():
        columns = {
            "time": ("Time", None),
            "n": ("n", words.count),
            "equal_share": ("Equal", words.share),
            "difference_p05_s": ("5th percentile (s)", words.number),
            "difference_median_s": ("Median (s)", words.number),
            "difference_p95_s": ("95th percentile (s)", words.number),
            "difference_mean_s": ("Mean (s)", words.number),
        }
        tables["agreement"] = html_table(agreement, columns, identifier("agreement"))
    correlations = _correlations_side_by_side(trace.table("correlations"))
    if correlations.height:
        columns = {
            "feature": ("Feature", None),
            "group_mean": ("r of group means", str),
            "group_mean_n": ("n", words.count),
            "group_mean_p": ("adjusted p", str),
            "job": (f"ρ over {trace.about['unit']}s", str),
            "job_n": ("n", words.count),
            "job_p": ("adjusted p", str),
        }
        tables["correlations"] = html_table(correlations, columns, identifier("correlations"), group="outcome_set")
    return tables


def _correlations_side_by_side(table: pl.DataFrame) -> pl.DataFrame:
    """A row per outcome set and feature: Pearson over group means beside Spearman over jobs, in words."""
    rows: dict[tuple, dict] = {}
    chosen = table.filter(pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(["success", "failure"]))
    for row in chosen.iter_rows(named=True):
        if (row["unit"], row["method"]) not in (("group_mean", "pearson"), ("job", "spearman")):
            continue
        key = (row["outcome_set"], row["feature"])
        cells = rows.setdefault(key, {"outcome_set": row["outcome_set"], "feature": FEATURE_WORDS[row["feature"]]})
        unit = row["unit"]
        cells[f"{unit}_n"] = row["n"]
        if row["estimate"] is not None:
            text = words.coefficient(row["estimate"]) + ("*" if row["reject"] else "")
            if row["ci_low"] is not None:
                text += f" [{words.coefficient(row['ci_low'])}, {words.coefficient(row['ci_high'])}]"
            cells[unit] = text
        if row["p_adjusted"] is not None:
            cells[f"{unit}_p"] = words.p_value(row["p_adjusted"]).removeprefix("= ")
    schema = dict.fromkeys(("outcome_set", "feature"), pl.String)
    for unit in ("group_mean", "job"):
        schema |= {unit: pl.String, f"{unit}_n": pl.Int64, f"{unit}_p": pl.String}
    # A feature that nothing can be said of has no row.
    told = [cells for cells in rows.values() if "group_mean" in cells or "job" in cells]
    return pl.DataFrame(told, schema=schema)
