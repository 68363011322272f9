"""The numbers of the reasons of failures that the report's prose uses."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.classify_failures.compute import kind_of
from ttf.numbers.metrics import Metrics

_DOMAINS = {"user program": "user", "system software": "system", "hardware": "hardware"}
# What a row of the taxonomy says, by what is behind it.
_OF_ROW = {
    None: {"trials": "failed attempts"},
    "trials": {"trials_share": "share"},
    "n": {"rtf_total_share": "share", "rtf_x_demand_share": "share", "rtf_p50_s": "s", "rtf_p90_s": "s"},
}


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    """How many failed attempts have a reason, by what evidence, the reasons and domains that matter, the log lines."""
    source, table = "tables/taxonomy.csv", given["taxonomy"]
    every = table.filter(pl.col("by") == "all")
    trials = int(every["trials"].sum())
    reasons = table.filter((pl.col("by") == "reason") & pl.col("domain").is_not_null())
    matched = int(reasons["trials"].sum())
    metrics.put("taxonomy.trials", trials, "failed attempts", source)
    metrics.put("taxonomy.matched", matched, "failed attempts", source, trials)
    metrics.put("taxonomy.unmatched", trials - matched, "failed attempts", source, trials)
    metrics.put("taxonomy.reasons", reasons.height, "reasons", source, matched)
    if trials:
        metrics.put("taxonomy.matched_share", matched / trials, "share", source, trials)
        _put(metrics, "taxonomy.all", every)
        metrics.put("taxonomy.unmatched_share", (trials - matched) / trials, "share", source, trials)
        _of_kinds(metrics, table.filter(by="reason"), trials)
    evidence = dict(table.filter(pl.col("by") == "evidence").select("evidence", "trials").iter_rows())
    for name in ("event", "text", "reason", "exit_code", "state"):
        metrics.put(f"taxonomy.by_{name}", evidence.get(name, 0), "failed attempts", source, trials)
    domains = table.filter(by="domain")
    named = domains.filter(pl.col("domain").is_in(list(_DOMAINS))).with_columns(pl.col("domain").replace(_DOMAINS))
    _put(metrics, "taxonomy.{domain}", named)
    several = domains.filter(pl.col("domain").str.contains(" or ", literal=True))
    metrics.put("taxonomy.several.trials", int(several["trials"].sum()), "failed attempts", source, trials)
    _put(metrics, "taxonomy.deterministic", table.filter(by="deterministic", deterministic=True))
    for name in ("trials_share", "rtf_x_demand_share"):
        known = reasons.filter(pl.col(name).is_not_null())
        if known.height:
            first = known.sort(name, descending=True, maintain_order=True).head(1)
            first = first.with_columns(every=trials, reasons=(known[name] == first[name][0]).sum())
            key = f"taxonomy.most.{name.removesuffix('_share')}"
            units = {"reasons": "reasons", "reason": "label", "domain": "label"}
            metrics.put_rows(key, first, units, source, "every")
            _put(metrics, key, first)
    line = {"unmatched_line": ("line", "label")}
    metrics.put_rows("taxonomy", given["unmatched"].head(1), line, "tables/unmatched.csv", "trials")
    of_line = {"unmatched_line_trials": ("trials", "failed attempts")}
    metrics.put_rows("taxonomy", given["unmatched"].head(1), of_line, "tables/unmatched.csv", None)
    tails = given["log_tails"]
    lines = dict(tails.select("code", "rows").iter_rows())
    metrics.put("taxonomy.lines", lines.get("lines"), "lines", "tables/log_tails.csv")
    wrong = tails.filter(pl.col("severity") == "error")
    if "lines" in lines:
        metrics.put("taxonomy.wrong_lines", int(wrong["rows"].sum()), "lines", "tables/log_tails.csv", lines["lines"])


def _of_kinds(metrics: Metrics, reasons: pl.DataFrame, trials: int) -> None:
    """Attempts by what ended them: limit, infra, other, none; their share of all that failed, and of their GPU time."""
    kinds = [kind_of(*row) for row in reasons.select("reason", "domain").iter_rows()]
    for (kind,), mine in reasons.with_columns(kind=pl.Series(kinds, dtype=pl.String)).group_by(
        "kind", maintain_order=True
    ):
        key, source, count = f"taxonomy.kind.{kind}", "tables/taxonomy.csv", int(mine["trials"].sum())
        metrics.put(f"{key}.trials", count, "failed attempts", source, trials)
        metrics.put(f"{key}.trials_share", count / trials, "share", source, trials)
        if reasons["rtf_x_demand_share"].count():
            metrics.put(f"{key}.gpu_share", mine["rtf_x_demand_share"].sum(), "share", source, trials)


def _put(metrics: Metrics, key: str, rows: pl.DataFrame) -> None:
    for n, units in _OF_ROW.items():
        metrics.put_rows(key, rows, units, "tables/taxonomy.csv", n)
