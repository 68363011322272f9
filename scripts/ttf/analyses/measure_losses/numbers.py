"""The numbers of lost work: what failures cost, whose they are, how they repeat, what would have saved some of it."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.measure_losses.owners import OWNERS
from ttf.analyses.measure_losses.what_if import TRIAL
from ttf.numbers.metrics import Metrics

# The GPUs of a common node.
SMALL_GPUS = 8
_HOURS = tuple(f"{of}gpu_hours" for of in ("", "failed_", "infra_", "first_order_", "second_order_", "linked_"))
_UNITS = {
    **dict.fromkeys(("runs", "failed_runs", "failed_without_time", "preemptions", "linked_preemptions"), "attempts"),
    **dict.fromkeys(("infra_failures", "infra_without_time"), "failures"),
    **dict.fromkeys(_HOURS, "GPU-hours"),
}


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    """All of them; of the table by size the sums, of the one by month the last month that the trace covers whole."""
    _of_sizes(metrics, given["lost_work"])
    _of_month(metrics, given["lost_work_by_month"])
    _of_owners(metrics, given["failure_concentration"])
    _of_repeats(metrics, given["repeats"])
    _of_what_if(metrics, given["what_if"])


def _of_sizes(metrics: Metrics, sizes: pl.DataFrame) -> None:
    source = "tables/lost_work.csv"
    if not sizes.height:
        return
    runs = int(sizes["runs"].sum())
    for name, unit in _UNITS.items():
        if sizes[name].count():
            metrics.put(f"lost_work.{name}", sizes[name].sum(), unit, source, runs)
    if both := sizes["first_and_linked_gpu_hours"].sum():
        share = sizes["linked_gpu_hours"].sum() / both
        metrics.put("lost_work.linked_share", share, "share", source, metrics["lost_work.infra_failures"]["value"])
    if total := metrics["lost_work.gpu_hours"]["value"]:
        for name in ("failed", "infra", "first_order"):
            hours = metrics[f"lost_work.{name}_gpu_hours"]["value"]
            metrics.put(f"lost_work.{name}_gpu_hours_share", hours / total, "share", source, runs)
    if failed := metrics["lost_work.failed_gpu_hours"]["value"]:
        large = sizes.filter(pl.col("gpus_high") > SMALL_GPUS)
        share, count = large["failed_gpu_hours"].sum() / failed, int(large["failed_runs"].sum())
        metrics.put("lost_work.failed_above_8_gpus_share", share, "share", source, count)
    metrics.put("lost_work.infra_basis", sizes["infra_basis"][0], "label", source, runs)
    metrics.put("lost_work.checkpoint_interval_s", sizes["checkpoint_interval_s"][0], "s", source)
    if lost := metrics["lost_work.first_order_gpu_hours"]["value"]:
        most = sizes.sort("first_order_gpu_hours", descending=True, maintain_order=True).row(0, named=True)
        units = {"gpus_low": "GPUs", "gpus_high": "GPUs", "infra_failures": "failures"}
        metrics.put_row("lost_work.most", most, units, source, most["runs"])
        metrics.put("lost_work.most.share", most["first_order_gpu_hours"] / lost, "share", source, most["runs"])


def _of_month(metrics: Metrics, by_month: pl.DataFrame) -> None:
    source = "tables/lost_work_by_month.csv"
    for row in by_month.filter("complete").tail(1).iter_rows(named=True):
        metrics.put("lost_work.month.window", row["window"], "label", source, row["runs"])
        metrics.put_row("lost_work.month", row, _UNITS | {"failed_gpu_hours_share": "share"}, source, row["runs"])


def _of_owners(metrics: Metrics, top: pl.DataFrame) -> None:
    source = "tables/failure_concentration.csv"
    for owner_by in OWNERS:
        for row in top.filter(owner_by=owner_by, ranked_by="ended").iter_rows(named=True):
            key = f"concentration.{owner_by}"
            metrics.put(f"{key}.owners", row["owners"], "owners", source)
            if round(100 * row["top_share"]) in (1, 5, 10):
                key += f".top_{100 * row['top_share']:.0f}"
                metrics.put(f"{key}.owners", row["owners_in_top"], "owners", source, row["owners"])
                shares = dict.fromkeys(("ended_share", "failures_share", "failed_gpu_hours_share"), "share")
                metrics.put_row(key, row, shares, source, row["owners"])


def _of_repeats(metrics: Metrics, repeats: pl.DataFrame) -> None:
    source = "tables/repeats.csv"
    for row in repeats.iter_rows(named=True):
        key = f"repeats.{row['group_by']}.{row['measure']}"
        for name in ("estimate", "ci_low", "ci_high"):
            metrics.put(key if name == "estimate" else f"{key}_{name}", row[name], row["unit"], source, row["n"])
        if row["estimate"] is not None:
            metrics.put(f"{key}_groups", row["groups"], "groups", source, row["n"])
            metrics.put(f"{key}_events", row["events"], "failures", source, row["n"])


def _of_what_if(metrics: Metrics, what_if: pl.DataFrame) -> None:
    """Of the trials the one that saves most in the net; each of the other scenarios."""
    source = "tables/what_if.csv"
    known = what_if.filter(pl.col("net_gpu_hours").is_not_null())
    trials = known.filter(scenario=TRIAL).sort("net_gpu_hours", descending=True, maintain_order=True)
    for row in [*trials.head(1).to_dicts(), *known.filter(pl.col("scenario") != TRIAL).to_dicts()]:
        key = f"what_if.{row['scenario']}"
        hours = ("saved_gpu_hours", "cost_gpu_hours", "net_gpu_hours", "given_up_gpu_hours")
        units = {"trial_s": "s"} | dict.fromkeys(("n", "affected", "given_up"), "jobs")
        metrics.put_row(key, row, units | dict.fromkeys(hours, "GPU-hours") | {"net_share": "share"}, source, row["n"])
