"""Sums of GPU time -> the rows of the ledger, with what they cost and what is to be known of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from ttf.analyses.lost import account_gpu_hours as category
from ttf.analyses.lost.account_gpu_hours import LEDGER, LEDGER_SUMMARY, UNUSED, USED
from ttf.engine.words import duration, plain_spaces
from ttf.records.infra import PROXY
from ttf.records.runs import GPU_HOUR
from ttf.stats.shares import part_of

OTHER = "other"
# In the order of the account; the last of what is used takes off what is not there.
ORDER = (*USED, category.ABOVE, *UNUSED)
# Of a scope that has none of it, rows of these are not shown even in the account of all.
_SELDOM = (category.ABOVE, category.NOT_WATCHED)
NO_CAPACITY = "the number of GPUs, or what most of the time they did, is not known: the account holds used time only"
NO_TIME = "no GPU time"


def named(unused: Mapping[str, list[int]], has_outages: bool, has_waits: bool) -> dict[str, list[int]]:
    """The categories by what the trace tells apart: without outages what is not in use may be down.

    unused: of `account_of`, by month.
    """
    renamed = {} if has_outages else {category.FREE: category.IDLE, category.FREE_WAITED: category.IDLE_WAITED}
    left_out = set() if has_outages else {category.DOWN, category.MAINTENANCE, category.NOT_WATCHED}
    if not has_waits:
        renamed = {category.FREE: category.NOT_IN_USE}
        left_out |= {category.FREE_WAITED}
    return {renamed.get(name, name): values for name, values in unused.items() if name not in left_out}


def notes_of(checkpoint_interval_s: int, restart_s: int, has_attempts: bool, unsized: int) -> dict[str, str]:
    """Category -> what is assumed, or cannot be told apart."""
    half = plain_spaces(duration(checkpoint_interval_s // 2))
    kept = f"all but the last {half}: lost_work.checkpoint_interval_s is assumed"
    lost = f"the last {half}, or all of a shorter attempt: lost_work.checkpoint_interval_s is assumed"
    restart = f"the first {plain_spaces(duration(restart_s))} of each retry: ettr.restart_s is assumed"
    unsized_said = f"; nodes without a known GPU, left out: {unsized:,}" if unsized else ""
    return {
        category.FAILED: "not attributed to infrastructure: failures by users, and what nothing recorded",
        category.FAILED_UNRECORDED: "causes are not recorded: failures by users and by infrastructure",
        category.INFRA_KEPT: kept,
        category.INFRA_LOST: lost,
        category.RESTART: restart if has_attempts else "the trace does not tell attempts apart",
        category.RUNNING: "how it will end is not known",
        category.UNKNOWN: "it ended, and no result is recorded",
        category.ABOVE: "used beyond the GPUs that are there, as records overlap or stay open: taken off",
        category.DOWN: f"from an unplanned outage to its repair, where no attempt held the GPU{unsized_said}",
        category.MAINTENANCE: "planned outages, where no attempt held the GPU",
        category.NOT_WATCHED: "before the node was in service, or after",
        category.FREE_WAITED: "at most the GPUs that waiting jobs requested; they may not have fitted",
        category.IDLE_WAITED: "outages are not recorded; at most the GPUs that waiting jobs requested",
        category.IDLE: "outages are not recorded",
        category.NOT_IN_USE: "down or free; when jobs waited is not recorded",
    }


def categories_of(basis: str, unused: Mapping) -> list[str]:
    """The categories that the trace tells apart, in their order. basis: of infra failures."""
    infra = {category.FAILED, category.INFRA_KEPT, category.INFRA_LOST}
    never = infra if basis == PROXY else {category.FAILED_UNRECORDED}
    return [name for name in ORDER if name in unused or (name in USED and name not in never)]


def ledger(
    sums: pl.DataFrame,
    unused: Mapping[str, list[int]],
    months: Sequence[str],
    basis: str,
    notes: Mapping[str, str],
    prices: Mapping,
    owners: int,
) -> pl.DataFrame:
    """LEDGER, of `spent` and of what nobody used in each month. The rows of a scope are parts of one whole number.

    owners: accounts, and partitions, with a scope of their own, those with the most time; the others are one, `other`.
    """
    by_month = {name: {of: milli_s[place] for of, milli_s in unused.items()} for place, name in enumerate(months)}
    month = pl.col("month").replace_strict(dict(enumerate(months)), return_dtype=pl.String)
    scopes = [("all", pl.lit("all"), "begins", {"all": {of: sum(milli_s) for of, milli_s in unused.items()}})]
    for by in ("account", "partition"):
        if sums[by].null_count() < sums.height:
            scopes.append((by, _most(sums, by, owners), "begins", {}))
    scopes.append(("month", month, "attempts", by_month))
    categories, rows = categories_of(basis, unused), []
    for scope_by, scope, counted, not_used in scopes:
        found = sums.group_by(category="category", scope=scope).agg(pl.col("milli_s", counted).sum())
        accounts, attempts = defaultdict(dict, {name: dict(of) for name, of in not_used.items()}), {}
        for name, of, milli_s, n in found.select("scope", "category", "milli_s", counted).iter_rows():
            accounts[name][of], attempts[name, of] = milli_s, n
        # In the order of time, or the largest first.
        largest = sorted(accounts, key=lambda name: (name is None, name == OTHER, -_total(accounts[name]), name))
        for name in months if scope_by == "month" else largest:
            account = accounts[name]
            for of in categories:
                if not account.get(of) and (scope_by != "all" or of in _SELDOM):
                    continue
                row = {"scope_by": scope_by, "scope": name, "category": of, "note": notes.get(of)}
                if of in USED:
                    row["attempts"] = attempts.get((name, of), 0)
                alone = scope_by in ("all", "month") and not unused
                rows.append(row | _worth(of, account.get(of, 0), _total(account), prices, alone))
    return LEDGER.frame(rows)


def summarise_ledger(table: pl.DataFrame) -> pl.DataFrame:
    """The one row of LEDGER_SUMMARY. table: LEDGER."""
    every, category_in = table.filter(scope_by="all"), pl.col("category").is_in
    row = {"used_gpu_hours": every.filter(category_in(USED))["gpu_hours"].sum() or None}
    row["above_gpu_hours"] = -every.filter(category=category.ABOVE)["gpu_hours"].sum() or None
    if every.filter(category_in(UNUSED))["gpu_hours"].sum():
        row["capacity_gpu_hours"] = every["gpu_hours"].sum()
    return LEDGER_SUMMARY.frame([row])


def _total(account: Mapping[str, int]) -> int:
    return sum(account.values())


def _most(sums: pl.DataFrame, by: str, owners: int) -> pl.Expr:
    """The owner of each sum, or `other` where many have more time."""
    totals = sums.drop_nulls(by).group_by(by).agg(pl.col("milli_s").sum())
    first = totals.sort("milli_s", by, descending=[True, False])[by].head(owners)
    is_first = pl.col(by).is_in(first.implode())
    return pl.when(is_first | pl.col(by).is_null()).then(by).otherwise(pl.lit(OTHER))


def _worth(of: str, milli_s: int, total: int, prices: Mapping, only_used: bool) -> dict:
    """GPU hours with their share, cost, electricity and emissions; blank, with the keys that are missing, where none

    is set. The power is that of a GPU in use, or idle, times `pue` where it is set.
    """
    power = "gpu_power_w" if of in USED or of == category.ABOVE else "idle_power_w"
    hours = milli_s / GPU_HOUR
    row = {"gpu_hours": hours, "share": part_of(milli_s, total)}
    reasons = [] if total else [NO_TIME]
    if only_used:
        reasons.append(NO_CAPACITY)
    if "price_per_gpu_hour" in prices:
        row |= {"cost": hours * prices["price_per_gpu_hour"], "currency": prices.get("currency")}
    if power in prices:
        row["kwh"] = hours * prices[power] * prices.get("pue", 1) / 1000
        if "co2_kg_per_kwh" in prices:
            row["co2_kg"] = row["kwh"] * prices["co2_kg_per_kwh"]
    needs = {"cost": ["price_per_gpu_hour"], "kwh": [power], "co2_kg": [power, "co2_kg_per_kwh"]}
    unset = dict.fromkeys(
        key for column, keys in needs.items() if column not in row for key in keys if key not in prices
    )
    if unset:
        reasons.append(f"not set: {', '.join(f'ledger.{key}' for key in unset)}")
    return row | {"reason": "; ".join(reasons) or None}
