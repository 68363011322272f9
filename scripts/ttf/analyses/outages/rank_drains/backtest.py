"""Would the list have been right? Each week the nodes listed from what was known before it, and what became of them."""

from datetime import UTC, datetime

import numpy as np
import polars as pl

from ttf.analyses.outages.rank_drains import DRAIN_BACKTEST
from ttf.analyses.outages.rank_drains.history import History
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.stats.clustered import Clusters, too_few
from ttf.stats.shares import part_of

DAY, WEEK = 86_400, 7 * 86_400
# So much has to be known before a list is made.
LEAST_S = 28 * DAY
# The last ones.
MOST_WEEKS = 520
YEAR_1990_S = 631_152_000
NONE_LISTED = "no listed node was up when it began"
NO_OTHERS = "no other node was up when it began"
NO_BASE = "no other node failed: nothing to compare with"
TOO_SHORT = "the watch is too short for a list and a week after it"


def backtest(history: History, false_discovery: float) -> pl.DataFrame:
    """DRAIN_BACKTEST: all weeks together, then each. The last week ends with the watch."""
    first, last = history.begin_s + LEAST_S, history.end_s
    weeks = min(max(0, last - first) // WEEK, MOST_WEEKS)
    rows, failed_of, expected_of = [], *np.zeros((2, len(history.names)))
    weeks_of, fleet = np.zeros(len(history.names)), np.unique(history.fleets, return_inverse=True)[1]
    for start_s in range(last - weeks * WEEK, last, WEEK):
        listed = history.judged(start_s, false_discovery)["listed"].to_numpy()
        up, failed = history.is_up(start_s, start_s + WEEK), history.outages(start_s, start_s + WEEK) > 0
        mine, others = up & listed, up & ~listed
        row = {"listed": mine.sum(), "failed": (mine & failed).sum()}
        row = {"window": _name(start_s, history.begin_s), "start_s": start_s} | {k: int(n) for k, n in row.items()}
        row |= {"others": int(others.sum()), "others_failed": int((others & failed).sum())}
        expected = None
        if row["others"]:
            chance = mine * _base_of(fleet, others, failed)
            expected = float(chance.sum())
            weeks_of += mine
            failed_of += mine & failed
            expected_of += chance
        rows.append(_told(row | {"expected": expected}))
    return DRAIN_BACKTEST.frame([_together(rows, weeks_of, failed_of, expected_of), *rows])


def _base_of(fleet: np.ndarray, others: np.ndarray, failed: np.ndarray) -> np.ndarray:
    """The share of the others of its fleet that failed, for each node; of all others where its fleet has none."""
    of_fleet, failed_of_fleet = (
        np.bincount(fleet, weights=who, minlength=fleet.max() + 1) for who in (others, others & failed)
    )
    overall = (others & failed).sum() / others.sum()
    return np.divide(failed_of_fleet, of_fleet, out=np.full(of_fleet.size, overall), where=of_fleet > 0)[fleet]


def _told(row: dict) -> dict:
    """A row with its shares and their ratio, and why one lacks."""
    shares = {
        "share": part_of(row["failed"], row["listed"]),
        "base_share": part_of(row["others_failed"], row["others"]),
    }
    ratio = row["failed"] / row["expected"] if row["expected"] else None
    reasons = [] if row["listed"] else [NONE_LISTED]
    reasons += [] if row["others"] else [NO_OTHERS]
    reasons += [NO_BASE] if row["listed"] and row["others"] and not row["others_failed"] else []
    return row | shares | {"ratio": ratio, "reason": "; ".join(reasons) or "of one week no clustered interval"}


def _together(rows: list[dict], weeks_of: np.ndarray, failed_of: np.ndarray, expected_of: np.ndarray) -> dict:
    """The row of all weeks. weeks_of, failed_of, expected_of: of each node, in which it was listed, failed, and how

    often it would have at the base share of the week: its clusters.
    """
    sums = {name: sum(row[name] for row in rows) for name in ("listed", "failed", "others", "others_failed")}
    row = {"window": "all", "expected": float(expected_of.sum()) if rows else None} | sums
    row = _told(row) | {"cluster_by": "node"}
    there = weeks_of > 0
    clusters = Clusters(np.zeros(there.sum(), np.int64), weeks_of[there], 1)
    row["clusters"] = float(clusters.effective[0])
    low, high = (float(end[0]) for end in clusters.ratio(failed_of[there], expected_of[there], 0.95)[:2])
    if np.isfinite(low) and np.isfinite(high):
        return row | {"ci_low_clustered": low, "ci_high_clustered": high, "reason": None}
    few = row["clusters"] < FEWEST_CLUSTERS
    why = TOO_SHORT if not rows else too_few(row["clusters"], "node") if few else "no spread between nodes to be seen"
    return row | {"reason": why}


def _name(start_s: int, begin_s: int) -> str:
    if start_s >= YEAR_1990_S:
        return datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%d")
    return f"day {(start_s - begin_s) // DAY + 1}"
