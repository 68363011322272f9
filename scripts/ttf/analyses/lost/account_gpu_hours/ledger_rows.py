"""Rows of the ledger, with cost and notes, from sums of GPU time."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import polars as pl

from ttf.analyses.lost import account_gpu_hours as category
from ttf.analyses.lost.account_gpu_hours import LEDGER, LEDGER_SUMMARY, OTHER_OWNERS, UNUSED, USED
from ttf.engine.words import duration, remove_no_break_spaces
from ttf.records.infra import PROXY
from ttf.records.runs import GPU_HOUR
from ttf.stats.shares import divide

# ABOVE_CAPACITY follows the used categories and subtracts what exceeds capacity.
CATEGORY_ORDER = (*USED, category.ABOVE_CAPACITY, *UNUSED)
# Rows of these categories are left out where they are 0, even in the scope `all`.
_SHOWN_IF_PRESENT = (category.ABOVE_CAPACITY, category.NOT_WATCHED)
NO_CAPACITY = "the number of GPUs, or what most of the time they did, is not known: the account holds used time only"
NO_TIME = "no GPU time"


def name_unused(unused: Mapping[str, list[int]], has_outages: bool, has_waits: bool) -> dict[str, list[int]]:
    """Rename and drop unused categories by what the trace distinguishes.

    Without outages, GPUs that are not in use may be down. `unused`: milli-GPU seconds by category and month.
    """
    renamed = {} if has_outages else {category.FREE: category.IDLE, category.FREE_WAITED: category.IDLE_WAITED}
    unknown = set() if has_outages else {category.DOWN, category.MAINTENANCE, category.NOT_WATCHED}
    if not has_waits:
        renamed = {category.FREE: category.NOT_IN_USE}
        unknown |= {category.FREE_WAITED}
    return {renamed.get(name, name): values for name, values in unused.items() if name not in unknown}


def category_notes(checkpoint_interval_s: int, restart_s: int, has_attempts: bool, unsized: int) -> dict[str, str]:
    """Map each category to its assumption, or to what the trace cannot distinguish."""
    half = remove_no_break_spaces(duration(checkpoint_interval_s // 2))
    kept_note = f"all but the last {half}: lost_work.checkpoint_interval_s is assumed"
    lost_note = f"the last {half}, or all of a shorter attempt: lost_work.checkpoint_interval_s is assumed"
    restart_note = f"the first {remove_no_break_spaces(duration(restart_s))} of each retry: ettr.restart_s is assumed"
    unsized_note = f"; nodes without a known GPU, left out: {unsized:,}" if unsized else ""
    return {
        category.FAILED: "not attributed to infrastructure: failures by users, and what nothing recorded",
        category.FAILED_UNRECORDED: "causes are not recorded: failures by users and by infrastructure",
        category.INFRA_KEPT: kept_note,
        category.INFRA_LOST: lost_note,
        category.RESTART: restart_note if has_attempts else "the trace does not tell attempts apart",
        category.RUNNING: "how it will end is not known",
        category.UNKNOWN: "it ended, and no result is recorded",
        category.ABOVE_CAPACITY: "used beyond the GPUs that are there, as records overlap or stay open: taken off",
        category.DOWN: f"from an unplanned outage to its repair, where no attempt held the GPU{unsized_note}",
        category.MAINTENANCE: "planned outages, where no attempt held the GPU",
        category.NOT_WATCHED: "before the node was in service, or after",
        category.FREE_WAITED: "at most the GPUs that waiting jobs requested; they may not have fitted",
        category.IDLE_WAITED: "outages are not recorded; at most the GPUs that waiting jobs requested",
        category.IDLE: "outages are not recorded",
        category.NOT_IN_USE: "down or free; when jobs waited is not recorded",
    }


def list_categories(basis: str, unused: Mapping) -> list[str]:
    """List the categories that the trace distinguishes, in order. `basis`: of infrastructure failures."""
    recorded_causes = {category.FAILED, category.INFRA_KEPT, category.INFRA_LOST}
    absent = recorded_causes if basis == PROXY else {category.FAILED_UNRECORDED}
    return [name for name in CATEGORY_ORDER if name in unused or (name in USED and name not in absent)]


def build_ledger(
    sums: pl.DataFrame,
    unused: Mapping[str, list[int]],
    months: Sequence[str],
    basis: str,
    notes: Mapping[str, str],
    prices: Mapping,
    owners: int,
) -> pl.DataFrame:
    """Build LEDGER from the sums of `sum_gpu_time` and the unused milli-GPU seconds by category and month.

    The rows of a scope are parts of one whole number. The `owners` accounts, and partitions, with the most time have a
    scope of their own; the rest share the scope `other`.
    """
    monthly = {month: {name: milli_s[i] for name, milli_s in unused.items()} for i, month in enumerate(months)}
    month_name = pl.col("month").replace_strict(dict(enumerate(months)), return_dtype=pl.String)
    scopes = [("all", pl.lit("all"), "begins", {"all": {name: sum(milli_s) for name, milli_s in unused.items()}})]
    for column in ("account", "partition"):
        if sums[column].null_count() < sums.height:
            scopes.append((column, _label_owners(sums, column, owners), "begins", {}))
    scopes.append(("month", month_name, "attempts", monthly))
    categories, rows = list_categories(basis, unused), []
    for scope_by, scope, count_column, unused_by_owner in scopes:
        owner_sums = sums.group_by(category="category", scope=scope).agg(pl.col("milli_s", count_column).sum())
        accounts, attempts = defaultdict(dict, {owner: dict(part) for owner, part in unused_by_owner.items()}), {}
        for owner, name, milli_s, n in owner_sums.select("scope", "category", "milli_s", count_column).iter_rows():
            accounts[owner][name], attempts[owner, name] = milli_s, n
        totals = {owner: sum(account.values()) for owner, account in accounts.items()}
        largest = sorted(accounts, key=lambda name: (name is None, name == OTHER_OWNERS, -totals[name], name))
        # Months in the order of time, other scopes by the time used.
        for owner in months if scope_by == "month" else largest:
            account = accounts[owner]
            for name in categories:
                if not account.get(name) and (scope_by != "all" or name in _SHOWN_IF_PRESENT):
                    continue
                row = {"scope_by": scope_by, "scope": owner, "category": name, "note": notes.get(name)}
                if name in USED:
                    row["attempts"] = attempts.get((owner, name), 0)
                only_used = scope_by in ("all", "month") and not unused
                rows.append(row | _value_hours(name, account.get(name, 0), totals.get(owner, 0), prices, only_used))
    return LEDGER.frame(rows)


def summarise_ledger(ledger: pl.DataFrame) -> pl.DataFrame:
    """Summarise a LEDGER as the one row of LEDGER_SUMMARY."""
    ledger_of_all, is_category_in = ledger.filter(scope_by="all"), pl.col("category").is_in
    row = {"used_gpu_hours": ledger_of_all.filter(is_category_in(USED))["gpu_hours"].sum() or None}
    row["above_gpu_hours"] = -ledger_of_all.filter(category=category.ABOVE_CAPACITY)["gpu_hours"].sum() or None
    if ledger_of_all.filter(is_category_in(UNUSED))["gpu_hours"].sum():
        row["capacity_gpu_hours"] = ledger_of_all["gpu_hours"].sum()
    return LEDGER_SUMMARY.frame([row])


def _label_owners(sums: pl.DataFrame, column: str, n_largest: int) -> pl.Expr:
    """Return a run's owner, OTHER_OWNERS if it is not one of the `n_largest` by GPU time; null if unknown."""
    totals = sums.drop_nulls(column).group_by(column).agg(pl.col("milli_s").sum())
    largest = totals.sort("milli_s", column, descending=[True, False])[column].head(n_largest)
    is_largest = pl.col(column).is_in(largest.implode())
    return pl.when(is_largest | pl.col(column).is_null()).then(column).otherwise(pl.lit(OTHER_OWNERS))


def _value_hours(name: str, milli_s: int, total: int, prices: Mapping, only_used: bool) -> dict:
    """Return the cells gpu_hours, share, cost, kwh, co2_kg and reason of a category's GPU time.

    A value is blank if a setting that it needs is missing; `reason` lists the missing settings. The power is that of a
    GPU in use, or idle, times `pue` if set.
    """
    power = "gpu_power_w" if name in USED or name == category.ABOVE_CAPACITY else "idle_power_w"
    hours = milli_s / GPU_HOUR
    row = {"gpu_hours": hours, "share": divide(milli_s, total)}
    reasons = [] if total else [NO_TIME]
    if only_used:
        reasons.append(NO_CAPACITY)
    if "price_per_gpu_hour" in prices:
        row |= {"cost": hours * prices["price_per_gpu_hour"], "currency": prices.get("currency")}
    if power in prices:
        row["kwh"] = hours * prices[power] * prices.get("pue", 1) / 1000
        if "co2_kg_per_kwh" in prices:
            row["co2_kg"] = row["kwh"] * prices["co2_kg_per_kwh"]
    keys_by_column = {"cost": ["price_per_gpu_hour"], "kwh": [power], "co2_kg": [power, "co2_kg_per_kwh"]}
    unset = dict.fromkeys(
        key for column, keys in keys_by_column.items() if column not in row for key in keys if key not in prices
    )
    if unset:
        reasons.append(f"not set: {', '.join(f'ledger.{key}' for key in unset)}")
    return row | {"reason": "; ".join(reasons) or None}
