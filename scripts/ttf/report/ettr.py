"""The tables of effective training time in the report, and the section on what the paper states."""

from collections.abc import Callable
from pathlib import Path

import jinja2
import polars as pl

from ttf.report import words
from ttf.report.blocks import table_block
from ttf.report.tables import Interval, html_table
from ttf.report.trace import Trace
from ttf.stats.ettr_reference import REFERENCE_SCHEMA
from ttf.stats.plans import RATE_UNIT

Identifier = Callable[[str], str]
# Sizes of the table of mitigations: that of the run asked for, and so many larger ones.
LARGER_SIZES = 2
LONGEST_REASON = 160


def planned(trace: Trace, identifier: Identifier) -> dict[str, str]:
    """What to expect by size, what one change buys, and the assumptions."""
    assumed, ettr = trace.table("ettr_assumptions"), trace.table("ettr")
    values = dict(assumed.select("assumption", "amount").iter_rows())
    size, size_of = values["size of the run"], pl.coalesce("gpus", "nodes")
    names = {"gpus": ("GPUs", words.count)} if ettr["gpus"].count() else {"nodes": ("Nodes", words.count)}
    tables = {"ettr-assumptions": _assumptions(assumed, identifier)}
    mine = (pl.col("checkpoint_interval_s") == values["checkpoint interval"]) & (pl.col("rate") == "estimate")
    rows = ettr.filter(mine & pl.col("ettr_renewal").is_not_null())
    if rows.height:
        columns = names | {
            "mttf_s": ("Failure every", words.duration),
            "ettr_v1": ("Version 1", words.share),
            "ettr_v2": ("Version 2", words.share),
            "ettr_combined": ("Combined", words.share),
            "ettr_renewal": ("Exact", words.share),
            "simulated": ("Simulated", str),
            "optimal_interval_s": ("Best interval", words.duration),
            "limit": ("Valid", None),
        }
        rows = rows.with_columns(
            simulated=_with_error(rows),
            limit=pl.when("approximation_valid").then(pl.lit("yes")).otherwise(pl.lit("no")),
        )
        tables["ettr"] = html_table(rows, columns, identifier("ettr"))
    gains = trace.table("mitigations").filter(pl.col("ettr_after").is_not_null() & (size_of >= size))
    if gains.height:
        sizes = gains.select(size_of.unique().sort().head(1 + LARGER_SIZES)).to_series()
        unit = "GPU" if gains["gpus"].count() else "node"
        gains = gains.filter(size_of.is_in(sizes.implode())).with_columns(
            group=pl.format(f"{{}} {unit}s", size_of.map_elements(words.count, return_dtype=pl.String))
        )
        columns = {
            "mitigation": ("Change", None),
            "ettr_before": ("Before", words.share),
            "ettr_after": ("After", words.share),
            f"{unit.lower()}_hours_saved_per_productive_week": (f"{unit}-hours saved a week of work", words.number),
        }
        tables["mitigations"] = html_table(gains, columns, identifier("mitigations"), group="group")
    return tables


def _with_error(rows: pl.DataFrame) -> pl.Series:
    texts = [
        None if ratio is None else words.share(ratio) + ("" if error is None else f" ± {words.number(100 * error, 1)}")
        for ratio, error in rows.select("ettr_simulated", "ettr_simulated_se").iter_rows()
    ]
    return pl.Series(texts, dtype=pl.String)


def _assumptions(assumed: pl.DataFrame, identifier: Identifier) -> str:
    worded = {
        "s": words.duration,
        RATE_UNIT: lambda rate: f"{words.number(rate)} per 1000 node-days",
        "GPUs": lambda count: words.plural(count, "GPU"),
        "nodes": lambda count: words.plural(count, "node"),
    }
    texts = [
        None if amount is None else worded[unit](amount)
        for amount, unit in assumed.select("amount", "unit").iter_rows()
    ]
    bases = {
        "state": "the trace: states that name infrastructure",
        "event": "the trace: states and health events",
        "proxy": "the trace, a proxy: every failure counts",
        "component": "the trace: failures of the machines",
    }
    columns = {
        "assumption": ("What", None),
        "words": ("Value", str),
        "n": ("n", words.count),
        "source": ("From", None),
        "reason": ("Note", None),
    }
    assumed = assumed.with_columns(words=pl.Series(texts, dtype=pl.String), source=pl.col("source").replace(bases))
    return html_table(assumed, columns, identifier("ettr-assumptions"), longest=LONGEST_REASON)


def measured(trace: Trace, identifier: Identifier) -> dict[str, str]:
    """Job runs by size, measured and expected."""
    rows = trace.table("ettr_measured")
    if not rows.height:
        return {}
    low, high = (pl.col(name).map_elements(words.count, return_dtype=pl.String) for name in ("gpus_low", "gpus_high"))
    same = pl.col("gpus_low") == pl.col("gpus_high")
    rows = rows.with_columns(size=pl.when(same).then(high).otherwise(pl.format("{} to {}", low, high)))
    columns = {
        "size": ("GPUs", None),
        "runs": ("Runs", words.count),
        "attempts": ("Attempts", words.count),
        "interruptions": ("Interruptions", words.count),
        "ettr_mean": Interval("Measured", words.share, "ci_low", "ci_high"),
        "ettr_if_all_interrupted_mean": ("All interrupted", words.share),
        "expected_ettr": ("Expected", words.share),
    }
    return {"ettr-measured": html_table(rows, columns, identifier("ettr-measured"))}


def reference_section(jinja: jinja2.Environment, reference: Path) -> str:
    """The .qmd of what the paper states about effective training time, from results/ettr_reference.csv."""
    table = pl.read_csv(reference, schema=REFERENCE_SCHEMA)
    worded = {
        "ettr": lambda share: f"{words.number(100 * share, 2)}\u00a0%",
        "mttf_h": lambda hours: words.duration(3600 * hours),
    }
    worded["error_percent"] = lambda percent: f"{words.number(percent, 2)}\u00a0%"
    shown = table.with_columns(
        *(
            pl.Series(
                name,
                [
                    None if value is None else worded[quantity](value)
                    for quantity, value in table.select("quantity", name).iter_rows()
                ],
                dtype=pl.String,
            )
            for name in ("published", "computed", "exact")
        ),
        verdict=pl.when("reproduced").then(pl.lit("reproduced")).otherwise(pl.lit("not reproduced")),
    )
    columns = {
        "statement": ("Statement", None),
        "published": ("Published", str),
        "computed": ("Formula", str),
        "exact": ("Exact", str),
        "verdict": ("Verdict", None),
        "note": ("Note", None),
    }
    html = html_table(shown, columns, "table-ettr-reference", group="source", longest=LONGEST_REASON)
    caption = (
        "What the paper states about effective training time and mean time to failure, and what its formulas give: "
        "reproduced where that rounds to the digits published; errors of the approximation to half a per cent."
    )
    return jinja.get_template("sections/ettr_reference.qmd").render(
        statements=table.height,
        reproduced=int(table["reproduced"].sum()),
        table=table_block("tbl-ettr-reference", html, caption, reference.name),
    )
