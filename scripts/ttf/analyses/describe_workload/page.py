import polars as pl

from ttf.analyses.describe_workload import PERCENTILES
from ttf.report.tables import Mean, Shown, span
from ttf.report.trace import Trace

SHOWN = ("p25_s", "p50_s", "p75_s", "p90_s", "p95_s")


def tables(trace: Trace) -> dict[str, Shown]:
    table = trace.table("percentiles").filter(
        (pl.col("outcome_set") == "all") & pl.col("group_by").is_in(["all", "gpu_type", "gpus"])
    )
    names = {"runtime_s": "run time", "queue_s": "queueing delay", "wall_s": "first start to last end"}
    kinds = {"all": "", "gpu_type": "GPU type ", "gpus": "GPUs: "}
    table = table.with_columns(
        quantity=pl.col("quantity").replace_strict(names),
        kind=pl.concat_str(
            pl.col("group_by").replace_strict(kinds), pl.when(group_by="gpus").then(span("group")).otherwise("group")
        ),
    )
    unit = f"{trace.about['unit'].capitalize()}s"
    columns = {"kind": (unit, None), "n": None, "mean_s": Mean(of="n")} | dict.fromkeys(SHOWN)
    return {"percentiles": Shown(table, columns, PERCENTILES, "quantity")}
