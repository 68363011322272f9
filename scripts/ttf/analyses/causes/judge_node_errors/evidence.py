"""Which codes precede failures, and the failures attributed to them, with the number that chance would attribute."""

from typing import NamedTuple

import polars as pl

from ttf.analyses.causes.judge_node_errors import ERROR_ATTRIBUTIONS
from ttf.analyses.causes.judge_node_errors.clocks import NOT_CHECKED
from ttf.analyses.causes.judge_node_errors.error_nodes import find_repeating_node
from ttf.analyses.causes.judge_node_errors.log_records import LogRecords
from ttf.stats.basics.holm import add_adjusted_p
from ttf.stats.clustered import FEWEST
from ttf.stats.matched_risk import (
    History,
    RatioTest,
    compare_counts,
    compare_with_control,
    move_signals,
    pair_running,
    shift_signals,
)

SIGNIFICANCE = 0.05
PRECEDES, BY_APPLICATION, DOES_NOT, TOO_FEW = "precedes failures", "application", "does not", "too few to tell"
AT_ENDS = "comes with ends"
# If at most this share of the attempts hit fails beyond chance, a code does not precede failures.
LEAST_EXCESS = 0.05
# With a smaller ratio, most attributed failures would be due to chance.
LEAST_RATIO = 2
# A code whose errors come with a failure at least this often may be its result. Then the ages and users at its errors
# must speak for running time instead of failures, by a likelihood ratio of 20 (its logarithm).
MOST_FOLLOWED, LEAST_EVIDENCE = 0.2, 3.0
# Failures of fewer users, by Kish's number, may be the work of one.
FEWEST_USERS = 2
NO_HIT = "no attempt ran on the node at an error"


class Evidence(NamedTuple):
    """codes: the cells of ERROR_CODES that tell how attempts fail; hits: see `compare_with_control`; attributions."""

    codes: list[dict]
    hits: pl.DataFrame
    attributions: pl.DataFrame


def weigh_evidence(records: LogRecords, window_s: int, block_days: int) -> Evidence:
    """Judge each error code, and attribute failures to codes that precede failures or that applications cause."""
    errors = records.errors
    signals = errors.select("unit", "code", "time_s")
    hits, controls = compare_with_control(signals, records.history, window_s)
    facts = errors.group_by("code").agg(
        pl.col("component").drop_nulls().mode().sort().first(),
        application=pl.col("application").fill_null(False).any(),
        lines=pl.col("lines").sum(),
        nodes=pl.col("unit").n_unique().cast(pl.Int64),
    )
    rows = []
    for fact in facts.sort("code").iter_rows(named=True):
        code, code_hits = fact["code"], hits.filter(code=fact["code"])
        rows.append(fact | _compare(code_hits, controls[code].failures if code in controls else 0.0, block_days))
    rows = add_adjusted_p(rows)
    suspects = [row["code"] for row in rows if _is_associated(row) and not row["application"]]
    checks = _Checks(records, signals, hits.filter(pl.col("code").is_in(suspects)), window_s, block_days)
    for row in rows:
        row["verdict"], note = _judge(row)
        if row["code"] in suspects:
            row["verdict"], note = checks.find_objection(row, controls[row["code"]].followed) or (row["verdict"], note)
        if row["verdict"] == DOES_NOT and records.clocks.status == NOT_CHECKED:
            note = f"{note}; clocks not checked"
        row["explains"] = row["verdict"] in (PRECEDES, BY_APPLICATION) and _is_associated(row)
        row["explains"] &= row["explains"] and row["ci_low"] >= LEAST_RATIO
        row["repeats_on"] = find_repeating_node(records, hits, row["code"]) if row["application"] else None
        row["reason"] = "; ".join(filter(None, (row["reason"], note))) or None
    return Evidence(rows, hits, _attribute(records, rows, window_s))


class _Checks:
    """Whether a code that precedes failures may do so without causing them. hits: of these codes."""

    def __init__(
        self, records: LogRecords, signals: pl.DataFrame, hits: pl.DataFrame, window_s: int, block_days: int
    ) -> None:
        self.records, self.signals, self.hits = records, signals, hits
        self.window_s, self.block_days = window_s, block_days
        history = records.history
        own = signals.join(hits.select("code").unique(), on="code", how="semi")
        moved = move_signals(hits, history, window_s), shift_signals(hits, window_s)
        self.moved = [compare_with_control(rows, history, window_s) for rows in moved]
        done = History(history.runs.with_columns(is_failed="is_done"), history.watch)
        self.done = compare_with_control(own, done, window_s)

    def find_objection(self, row: dict, followed: float) -> tuple[str, str] | None:
        """Return the verdict and note if something speaks against the code.

        row: cells of the code; followed: share of its errors with a hit after which an attempt failed.
        """
        code = row["code"]
        moved, done = [self._test(results, code) for results in self.moved], self._test(self.done, code)
        failed = self.hits.filter("is_failed", code=code)
        by_user = failed["user"].value_counts()["count"]
        significant = (test.ratio or 0.0 for test in moved if test.p_value is not None and test.p_value <= SIGNIFICANCE)
        high = max(significant, default=0.0)
        if row["ci_low"] < LEAST_RATIO * high:
            return DOES_NOT, f"moved to like attempts or days its errors precede failures too ({high:.1f} times)"
        if self.hits["user"].n_unique() >= FEWEST and failed.height**2 / (by_user**2).sum() < FEWEST_USERS:
            return TOO_FEW, "most of these failures are of one user"
        if done.low is not None and done.low >= LEAST_RATIO:
            return AT_ENDS, "it comes before the ends of attempts that do not fail, too"
        if followed >= MOST_FOLLOWED and failed["hazard"].log().sum() > -LEAST_EVIDENCE:
            return AT_ENDS, "it comes with failures, not clearly when attempts run instead of when they fail"
        return None

    def _test(self, results: tuple, code: str) -> RatioTest:
        hits, controls = results
        failures = controls[code].failures if code in controls else 0.0
        return compare_counts(hits.filter(code=code), failures, self.block_days)


def _compare(hits: pl.DataFrame, control_failures: float, block_days: int) -> dict:
    n = hits.height
    if not n:
        return dict.fromkeys(("attempts_hit", "failed"), 0) | {"reason": NO_HIT}
    failed, test = int(hits["is_failed"].sum()), compare_counts(hits, control_failures, block_days)
    reasons = []
    if test.ratio is None:
        reasons.append("no attempt failed on a watched node at other times")
    elif test.p_value is None:
        reasons.append(f"{test.effective_units:.1f} effective nodes with attempts hit, fewer than {FEWEST}: no test")
    return {
        "attempts_hit": n,
        "failed": failed,
        "failed_share": failed / n,
        "expected": float(hits["chance"].sum()),
        "ratio": test.ratio,
        "ci_low": test.low,
        "ci_high": test.high,
        "effective_nodes": test.effective_units,
        "p_value": test.p_value,
        "reason": "; ".join(reasons),
    }


def _is_associated(row: dict) -> bool:
    return row["p_adjusted"] is not None and row["p_adjusted"] <= SIGNIFICANCE and row["ci_low"] > 1


def _judge(row: dict) -> tuple[str, str | None]:
    """Return the verdict on a code, and a note."""
    if row["application"]:
        return BY_APPLICATION, None
    if _is_associated(row):
        return PRECEDES, None
    if row.get("p_value") is None:
        return TOO_FEW, None
    most_excess = max(0.0, (row["ci_high"] - 1) * row["expected"] / row["attempts_hit"])
    if most_excess <= LEAST_EXCESS:
        return DOES_NOT, f"at most {most_excess:.1%} of the attempts hit fail beyond chance"
    return TOO_FEW, f"up to {min(most_excess, 1):.0%} of the attempts hit may fail beyond chance"


def _attribute(records: LogRecords, codes: list[dict], window_s: int) -> pl.DataFrame:
    """Attribute each failure to an error in the window before its end: ERROR_ATTRIBUTIONS, sorted by attempt.

    Only codes that explain failures count: first those that precede failures, then those of applications. Among codes,
    the one after which attempts fail most often; among errors the last, then the first node and GPU by name.
    """
    used = [row for row in codes if row["explains"]]
    schema = {"code": pl.String, "failed_share": pl.Float64, "application": pl.Boolean}
    facts = pl.DataFrame([{name: row[name] for name in schema} for row in used], schema=schema)
    signals = records.errors.drop("application").join(facts, on="code")
    pairs = pair_running(signals, records.history.runs.filter("is_failed"))
    pairs = pairs.with_columns(apart_s=pl.col("end_s") - pl.col("time_s")).filter(pl.col("apart_s") <= window_s)
    pairs = pairs.sort(
        ["run", "application", "failed_share", "time_s", "node", "gpu", "code"],
        descending=[False, False, True, True, False, False, False],
    )
    first = pairs.unique("run", keep="first", maintain_order=True).rename({"run": "attempt_id", "time_s": "error_s"})
    return ERROR_ATTRIBUTIONS.conform(first)
