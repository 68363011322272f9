"""Backtest the list: each week, list nodes from earlier data and compare their failures with those of other nodes."""

from datetime import UTC, datetime

import numpy as np
import polars as pl

from ttf.analyses.outages.list_drains import DRAIN_BACKTEST
from ttf.analyses.outages.list_drains.history import History
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.stats.clustered import Clusters, too_few_reason
from ttf.stats.shares import divide

DAY, WEEK = 86_400, 7 * 86_400
# Shortest history before a list is made.
MIN_HISTORY_S = 28 * DAY
# Only the latest weeks are tested.
MOST_WEEKS = 156
YEAR_1990_S = 631_152_000
NONE_LISTED = "no listed node was up when it began"
NO_OTHERS = "no other node was up when it began"
NO_BASE = "no other node failed: nothing to compare with"
TOO_SHORT = "the watch is too short for a list and a week after it"


def backtest(history: History, false_discovery: float) -> pl.DataFrame:
    """Return DRAIN_BACKTEST: all weeks together, then each week; the last ends with the watch."""
    first_s, last_s = history.begin_s + MIN_HISTORY_S, history.end_s
    weeks = min(max(0, last_s - first_s) // WEEK, MOST_WEEKS)
    rows, failures, expected_sums = [], *np.zeros((2, len(history.names)))
    listed_weeks, fleet = np.zeros(len(history.names)), np.unique(history.fleets, return_inverse=True)[1]
    for start_s in range(last_s - weeks * WEEK, last_s, WEEK):
        listed = history.compare_nodes(start_s, false_discovery)[0]["listed"].to_numpy()
        up, failed = history.is_up(start_s, start_s + WEEK), history.count_outages(start_s, start_s + WEEK) > 0
        is_listed, is_other = up & listed, up & ~listed
        row = {"window": _week_name(start_s, history.begin_s), "start_s": start_s}
        row |= {"listed": int(is_listed.sum()), "failed": int((is_listed & failed).sum())}
        row |= {"others": int(is_other.sum()), "others_failed": int((is_other & failed).sum())}
        expected = None
        if row["others"]:
            p_failure = is_listed * _base_rates(fleet, is_other, failed)
            expected = float(p_failure.sum())
            listed_weeks += is_listed
            failures += is_listed & failed
            expected_sums += p_failure
        rows.append(_add_shares(row | {"expected": expected}))
    return DRAIN_BACKTEST.frame([_summarise_weeks(rows, listed_weeks, failures, expected_sums), *rows])


def _base_rates(fleet: np.ndarray, is_other: np.ndarray, failed: np.ndarray) -> np.ndarray:
    """Return for each node the share of unlisted nodes of its fleet, or else of all, that failed."""
    n_others, n_failed = (
        np.bincount(fleet, weights=mask, minlength=fleet.max() + 1) for mask in (is_other, is_other & failed)
    )
    rates = np.full(n_others.size, (is_other & failed).sum() / is_other.sum())
    return np.divide(n_failed, n_others, out=rates, where=n_others > 0)[fleet]


def _add_shares(row: dict) -> dict:
    """Return the row with its shares, their ratio, and the reasons for blanks."""
    shares = {
        "share": divide(row["failed"], row["listed"]),
        "base_share": divide(row["others_failed"], row["others"]),
    }
    ratio = row["failed"] / row["expected"] if row["expected"] else None
    reasons = [] if row["listed"] else [NONE_LISTED]
    reasons += [] if row["others"] else [NO_OTHERS]
    reasons += [NO_BASE] if row["listed"] and row["others"] and not row["others_failed"] else []
    return row | shares | {"ratio": ratio, "reason": "; ".join(reasons) or "of one week no clustered interval"}


def _summarise_weeks(rows: list[dict], listed_weeks: np.ndarray, failures: np.ndarray, expected: np.ndarray) -> dict:
    """Return the row of all weeks, clustered by node. Arrays: each node's weeks on the list and failures."""
    sums = {name: sum(row[name] for row in rows) for name in ("listed", "failed", "others", "others_failed")}
    row = {"window": "all", "expected": float(expected.sum()) if rows else None} | sums
    row = _add_shares(row) | {"cluster_by": "node"}
    was_listed = listed_weeks > 0
    clusters = Clusters.in_one_stratum(listed_weeks[was_listed])
    row["clusters"] = float(clusters.effective[0])
    low, high = (float(bound[0]) for bound in clusters.ratio(failures[was_listed], expected[was_listed], 0.95)[:2])
    if np.isfinite(low) and np.isfinite(high):
        return row | {"ci_low_clustered": low, "ci_high_clustered": high, "reason": None}
    if not rows:
        return row | {"reason": TOO_SHORT}
    is_few = row["clusters"] < FEWEST_CLUSTERS
    return row | {"reason": too_few_reason(row["clusters"], "node") if is_few else "no spread between nodes to be seen"}


def _week_name(start_s: int, begin_s: int) -> str:
    if start_s >= YEAR_1990_S:
        return datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%d")
    return f"day {(start_s - begin_s) // DAY + 1}"
