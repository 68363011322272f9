"""The numbers of the reasons of failures that the report's prose uses."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics

_SHARES = ("trials_share", "rtf_total_share", "rtf_x_demand_share")
_DOMAINS = {"user program": "user", "system software": "system", "hardware": "hardware"}


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
        _put_row(metrics, "taxonomy.all", every.row(0, named=True), source)
    evidence = dict(table.filter(pl.col("by") == "evidence").select("evidence", "trials").iter_rows())
    for name in ("text", "reason", "exit_code", "state"):
        metrics.put(f"taxonomy.by_{name}", evidence.get(name, 0), "failed attempts", source, trials)
    for row in table.filter((pl.col("by") == "domain") & pl.col("domain").is_in(list(_DOMAINS))).iter_rows(named=True):
        _put_row(metrics, f"taxonomy.{_DOMAINS[row['domain']]}", row, source)
    several = table.filter((pl.col("by") == "domain") & pl.col("domain").str.contains(" or ", literal=True))
    metrics.put("taxonomy.several.trials", int(several["trials"].sum()), "failed attempts", source, trials)
    for row in table.filter((pl.col("by") == "deterministic") & pl.col("deterministic")).iter_rows(named=True):
        _put_row(metrics, "taxonomy.deterministic", row, source)
    for name in ("trials_share", "rtf_x_demand_share"):
        known = reasons.filter(pl.col(name).is_not_null())
        if known.height:
            first = known.sort(name, descending=True, maintain_order=True).row(0, named=True)
            key = f"taxonomy.most.{name.removesuffix('_share')}"
            equal = int((known[name] == first[name]).sum())
            metrics.put(f"{key}.reasons", equal, "reasons", source, trials)
            metrics.put(f"{key}.reason", first["reason"], "label", source, trials)
            metrics.put(f"{key}.domain", first["domain"], "label", source, trials)
            _put_row(metrics, key, first, source)
    if given["unmatched"].height:
        first = given["unmatched"].row(0, named=True)
        metrics.put("taxonomy.unmatched_line", first["line"], "label", "tables/unmatched.csv", first["trials"])
    tails = given["log_tails"]
    lines = dict(tails.select("code", "rows").iter_rows())
    metrics.put("taxonomy.lines", lines.get("lines"), "lines", "tables/log_tails.csv")
    wrong = tails.filter(pl.col("severity") == "error")
    if "lines" in lines:
        metrics.put("taxonomy.wrong_lines", int(wrong["rows"].sum()), "lines", "tables/log_tails.csv", lines["lines"])


def _put_row(metrics: Metrics, key: str, row: dict, source: str) -> None:
    metrics.put(f"{key}.trials", row["trials"], "failed attempts", source)
    for name in _SHARES:
        metrics.put(f"{key}.{name}", row[name], "share", source, row["n"] if "rtf" in name else row["trials"])
    for name in ("rtf_p50_s", "rtf_p90_s"):
        metrics.put(f"{key}.{name}", row[name], "s", source, row["n"])
