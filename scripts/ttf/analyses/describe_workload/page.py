from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import Mean, html_table, span
from ttf.report.trace import Trace

Identifier = Callable[[str], str]


def tables(trace: Trace, identifier: Identifier) -> dict[str, str]:
    table = trace.table("percentiles").filter(
        (pl.col("outcome_set") == "all") & pl.col("group_by").is_in(["all", "gpu_type", "gpus"])
    )
    if not table.height:
        return {}
    names = {"runtime_s": "run time", "queue_s": "queueing delay", "wall_s": "first start to last end"}
    kinds = {"all": "", "gpu_type": "GPU type ", "gpus": "GPUs: "}
    table = table.with_columns(
        quantity=pl.col("quantity").replace_strict(names),
        kind=pl.concat_str(
            pl.col("group_by").replace_strict(kinds),
            pl.when(group_by="gpus").then(span("group")).otherwise("group"),
        ),
    )
    columns = {
        "kind": (f"{trace.about['unit'].capitalize()}s", None),
        "n": ("n", words.count),
        "mean_s": Mean("Mean", words.duration, "n"),
        "p25_s": ("25 %", words.duration),
        "p50_s": ("Median", words.duration),
        "p75_s": ("75 %", words.duration),
        "p90_s": ("90 %", words.duration),
        "p95_s": ("95 %", words.duration),
    }
    return {"percentiles": html_table(table, columns, identifier("percentiles"), group="quantity")}


# Name of the analysis -> its HTML tables by name, empty ones left out. identifier: the id of a table in the page.
