"""The numbers of what changed, and of the forecast."""

import polars as pl

from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics
from ttf.stats.shares import with_wilson


def numbers(metrics: Metrics, given: Inputs) -> None:
    of_changes(metrics, given["changes"])
    for name in ("new_failure_words", "new_suspect_nodes"):
        if given["changes"].height:
            what = name.removeprefix("new_").replace("_", " ")
            metrics.put(f"changes.{name}", given[name].height, what, f"tables/{name}.csv")
    of_forecast(metrics, given["week_forecast"])


def of_changes(metrics: Metrics, changes: pl.DataFrame) -> None:
    """Of each measure its values, n, verdict; over all, how many were tested and how many changed."""
    source = "tables/changes.csv"
    for row in changes.iter_rows(named=True):
        key, unit, both = f"changes.{row['measure']}", row["unit"], (row["n_before"] or 0) + (row["n_after"] or 0)
        metrics.put(f"{key}.verdict", row["verdict"], "label", source, both)
        values = {"before": "before", "after": "after", "difference": "difference", "low": "ci_low", "high": "ci_high"}
        ns = {"before": row["n_before"], "after": row["n_after"]}
        for name, column in values.items():
            metrics.put(f"{key}.{name}", row[column], unit, source, ns.get(name, both))
        for side, n in ns.items():
            metrics.put(f"{key}.n_{side}", n, row["n_of"], source)
            metrics.put(f"{key}.events_{side}", row[f"events_{side}"], "events", source, n)
            metrics.put(f"{key}.gpu_hours_{side}", row[f"amount_{side}"], "GPU hours", source, n)
        for name in ("p_value", "p_adjusted"):
            metrics.put(f"{key}.{name}", row[name], "1", source, both)
        metrics.put(f"{key}.detectable_ratio", row["detectable_ratio"], "1", source, both)
        metrics.put(f"{key}.follow_up_s", row["follow_up_s"], "s", source)
        metrics.put(f"{key}.reason", row["reason"], "label", source)
    for row in changes.head(1).iter_rows(named=True):
        metrics.put("changes.part", row["part"], "label", source)
        metrics.put("changes.parts_before", row["parts_before"], "parts", source)
        metrics.put("changes.from_s", row["from_s"], "s", source)
        metrics.put("changes.to_s", row["to_s"], "s", source)
        by = changes["cluster_by"].drop_nulls()
        metrics.put("changes.cluster_by", by.first(), "label", source)
        metrics.put("changes.measures", changes.height, "measures", source)
        metrics.put("changes.tested", changes["p_adjusted"].count(), "measures", source, changes.height)
        changed = changes.filter(verdict="changed").height
        metrics.put("changes.changed", changed, "measures", source, changes.height)


def of_forecast(metrics: Metrics, forecast: pl.DataFrame) -> None:
    """Of the next week; coverage: how many of the weeks with a forecast before them held it, with Wilson's 95% CI."""
    source = "tables/week_forecast.csv"
    for (what,), weeks in forecast.group_by("what", maintain_order=True):
        key, row = f"forecast.{what}", weeks.row(-1, named=True)
        n = row["weeks_before"]
        for name in ("expected", "low", "high"):
            metrics.put(f"{key}.{name}", row[name], "failures", source, n)
        metrics.put(f"{key}.dispersion", row["dispersion"], "1", source, n)
        metrics.put(f"{key}.weeks", n, "weeks", source)
        metrics.put(f"{key}.reason", row["reason"] if row["high"] is None else None, "label", source)
        held = weeks["held"].drop_nulls()
        metrics.put(f"{key}.tried", held.len(), "weeks", source)
        if held.len():
            metrics.put(f"{key}.held", int(held.sum()), "weeks", source, held.len())
            found = with_wilson("coverage", int(held.sum()), held.len())
            for name, column in (("", "coverage"), ("_low", "ci_low"), ("_high", "ci_high")):
                metrics.put(f"{key}.coverage{name}", found[column], "share", source, held.len())
