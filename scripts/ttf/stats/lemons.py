"""Lemon nodes: machines on which more fails than their use explains, told from chance at a stated false-discovery rate.

The signals are those of Kokolis et al. (2025, section 7) that a trace supports. A bare ranking by them would list the
busiest nodes and the unlucky ones, so each node is tested against its fleet (nodes of the same GPU type; of a component
trace, of the same system), one-sided, and the p-values of all nodes are adjusted after Benjamini and Hochberg (1995).

What counts, and against what, depends on what ended the runs (`basis` of lives_infra.parquet):

- Infrastructure (`state`, `event`) and components: a failure is the node's. Given the fleet's failures, a node's share
  of them follows its share of the exposure: a conditional binomial test (Przyborowski and Wilenski 1940). A node that
  goes down takes all its jobs along, and may do so again until it is mended: at most one failure a node and day counts.
- `proxy`, failures of any kind: most are of users' making, they come early in a run, and a user retries, on the same
  node often. Exposure would then take a node with many young runs for a bad one, and one user's bad job for many
  failures. So a trial is the first run that a user starts on a node on a day, until one of them has failed: a user's
  work can count against a node once. A node's trials are compared with those of the same user, day and fleet on other
  nodes: given that K of M of them failed, each failed with chance K / M, whatever the user's own propensity. The sum of
  these chances is a Poisson-binomial variable: a log-rank test in discrete time, stratified by user and day.

A failed attempt on several nodes counts only where the trace says on which of them; else it is `shared`.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy.special import betainc, betaincinv

from ttf.infra import EVENT
from ttf.stats.mttf import SECONDS_A_DAY, garwood_interval
from ttf.stats.order import first_of_each, numbered, order_by

LEMON_SCHEMA = {
    "node": pl.String,
    "fleet": pl.String,
    "basis": pl.String,
    "window_from_s": pl.Int64,
    "window_to_s": pl.Int64,
    "placements": pl.Int64,
    "single_node_placements": pl.Int64,
    "single_node_failures": pl.Int64,
    "single_node_failure_rate": pl.Float64,
    "multi_node_failures": pl.Int64,
    "shared_multi_node_failures": pl.Int64,
    "out_count": pl.Int64,
    "exposure_s": pl.Int64,
    "failures": pl.Int64,
    "failures_per_1000_node_days": pl.Float64,
    "fleet_failures_per_1000_node_days": pl.Float64,
    "trials": pl.Int64,
    "counted": pl.Int64,
    "expected": pl.Float64,
    "rate_ratio": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "p_value": pl.Float64,
    "q_value": pl.Float64,
    "lemon": pl.Boolean,
    "reason": pl.String,
}
EFFECT_SCHEMA = {
    "picked_on": pl.String,
    "measured_on": pl.String,
    "nodes": pl.Int64,
    "lemons": pl.Int64,
    "failures": pl.Int64,
    "exposure_s": pl.Int64,
    "mttf_s": pl.Float64,
    "ci_low_s": pl.Float64,
    "ci_high_s": pl.Float64,
    "failures_without": pl.Int64,
    "exposure_without_s": pl.Int64,
    "mttf_without_s": pl.Float64,
    "ci_low_without_s": pl.Float64,
    "ci_high_without_s": pl.Float64,
    "mttf_ratio": pl.Float64,
    "reason": pl.String,
}
CONFIDENCE = 0.95
WHOLE, FIRST, SECOND = "whole window", "first half", "second half"
NO_FLEET = "no GPU"
# Nodes whose tails are worked out together.
_BLOCK = 256


def basis_of(lives: pl.DataFrame) -> str:
    """What lays failures to infrastructure: one word of a trace; where it has no lives, nothing does."""
    return lives["basis"][0] if lives.height else "proxy"


def last_window(placements: pl.LazyFrame, days: int) -> tuple[int, int]:
    """The last `days` days of the placements: (from, to) in seconds, to being one more than the last moment written.

    Without any time: (0, 0).
    """
    last = placements.select(pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())).collect().item()
    return (0, 0) if last is None else (last + 1 - days * SECONDS_A_DAY, last + 1)


def runs_in(placements: pl.LazyFrame, lives: pl.DataFrame, window: tuple[int, int]) -> pl.DataFrame:
    """The placements that were there within the window [from, to), a row each, in their order.

    placements: PLACEMENT_COLUMNS. lives: unit_id, life_id, event, basis, user, account, gpu_type of the infra lives.
    Columns: node, gpu_type and user (Categorical; who has no name is one user), start_s, end_s, until_s (the start
    where it ended at a time not known; the window's end for a run still going on), single (attempt on one node), failed
    (its failure is this node's), shared (the attempt failed, on which of its nodes is not told), known (whether this
    node's part failed is).
    """
    low, high = window
    is_proxy = basis_of(lives) == "proxy"
    frame, failed = placements, pl.lit(None, pl.Boolean)
    is_single, is_own = (pl.col("nodes") == 1).fill_null(False), pl.col("own_outcome")
    if is_proxy:
        failed = (pl.col("outcome") == "failure").fill_null(False)
        if placements.select((pl.col("attempt") > 0).any()).collect().item():
            # An attempt that was tried again and of which nobody tells how it ended: it did not succeed.
            last = placements.group_by("job_id", "task").agg(last_attempt=pl.col("attempt").max())
            frame = placements.join(last, on=["job_id", "task"], nulls_equal=True, how="left", maintain_order="left")
            failed |= (pl.col("outcome").is_null() & (pl.col("attempt") < pl.col("last_attempt"))).fill_null(False)
    else:
        # The attempts on several nodes of which one is named as the one that failed.
        is_named = (pl.col("nodes") > 1) & pl.col("infra_failure")
        named = placements.filter(is_named).select("job_id", "attempt", is_named=True).unique().collect().lazy()
        frame = placements.join(named, on=["job_id", "attempt"], how="left", maintain_order="left")
        is_own = is_single | pl.col("is_named").fill_null(False)
    is_running = (pl.col("outcome") == "running").fill_null(False) & pl.col("end_s").is_null()
    runs = (
        frame.filter((pl.col("start_s") < high) & ((pl.coalesce("end_s", "start_s") >= low) | is_running))
        .select(
            # Of millions of placements the texts would not fit.
            pl.col("job_id", "task", "node").cast(pl.Categorical),
            "attempt",
            "start_s",
            "end_s",
            until_s=pl.coalesce(
                pl.col("start_s") + pl.col("runtime_s"), pl.when(is_running).then(high), pl.col("start_s")
            ),
            single=is_single,
            is_own=is_own,
            failed=failed,
            is_named=pl.col("infra_failure").fill_null(False),
            succeeded=(pl.col("outcome") == "success").fill_null(False),
        )
        .collect(engine="streaming")
    )
    runs = runs.drop("job_id", "task", "attempt").hstack(_of_lives(runs.select("job_id", "task", "attempt"), lives))
    told = failed = pl.col("failed")
    if not is_proxy:
        failed = pl.col("attempt_failed")
        told = pl.when("single").then(failed).otherwise("is_named")
    return runs.select(
        "node",
        "gpu_type",
        "user",
        "start_s",
        "end_s",
        "until_s",
        "single",
        failed=told & pl.col("is_own"),
        shared=failed & ~pl.col("is_own"),
        known=(failed | pl.col("succeeded")) & pl.col("is_own"),
    )


def _of_lives(attempts: pl.DataFrame, lives: pl.DataFrame) -> pl.DataFrame:
    """What the lives tell of each of some attempts (job_id, task, attempt): attempt_failed, gpu_type, user."""
    number = numbered(*(_codes(attempts[name]) for name in attempts.columns))
    example = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    example[number] = np.arange(number.size)
    of_lives = lives.lazy().select(
        "unit_id",
        attempt="life_id",
        attempt_failed=pl.col("event") == EVENT,
        gpu_type=pl.col("gpu_type").cast(pl.Categorical),
        user=pl.coalesce("user", "account").cast(pl.Categorical),
    )
    unit_id = pl.concat_str(pl.col("job_id", "task").cast(pl.String), separator="/", ignore_nulls=True)
    found = (
        attempts[example]
        .lazy()
        .select("attempt", unit_id=unit_id)
        .with_row_index()
        .join(of_lives, on=["unit_id", "attempt"], how="left", maintain_order="left")
        .unique("index", keep="first", maintain_order=True)
        .select(
            pl.col("attempt_failed").fill_null(False),
            pl.col("gpu_type").fill_null(NO_FLEET),
            pl.col("user").fill_null(""),
        )
        .collect(engine="in-memory")
    )
    return found[number]


def _codes(names: pl.Series) -> np.ndarray:
    """Whole numbers as they are; of texts a number for each, -1 for blank."""
    if names.dtype == pl.String:
        names = names.cast(pl.Categorical)
    return names.to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def within(runs: pl.DataFrame, basis: str, window: tuple[int, int]) -> pl.DataFrame:
    """The runs of `runs_in` that were there within a window, as seen from it: node, fleet, user, start_s, single, and

    day (whole days since the window's start), exposure_s (time in the window), failed and shared (in the window),
    is_trial (started in it, and known). With the basis `proxy` a failure belongs to the start of its run, which is when
    the trial began; else to its end, or to its start where the end is not known. Out of the window day is blank.
    fleet: the GPU type that most of the node's runs here asked for (of equals the first by name), or NO_FLEET.
    """
    low, high = window
    moment = pl.col("start_s") if basis == "proxy" else pl.coalesce("end_s", "start_s")
    is_within = moment.is_between(low, high, closed="left")
    exposure_s = pl.min_horizontal("until_s", pl.lit(high)) - pl.max_horizontal("start_s", pl.lit(low))
    runs = runs.filter(
        (pl.col("start_s") < high) & (pl.max_horizontal("until_s", pl.coalesce("end_s", "start_s")) >= low)
    ).select(
        "node",
        "gpu_type",
        "user",
        "start_s",
        "single",
        day=pl.when(is_within).then((moment - low) // SECONDS_A_DAY),
        exposure_s=exposure_s.clip(0),
        failed=pl.col("failed") & is_within,
        shared=pl.col("shared") & is_within,
        is_trial=pl.col("known") & pl.col("start_s").is_between(low, high, closed="left"),
    )
    usual = (
        runs.group_by("node", fleet="gpu_type")
        .agg(rows=pl.len())
        .sort("rows", pl.col("fleet").cast(pl.String), descending=[True, False])
        .unique("node", keep="first", maintain_order=True)
        .select("node", "fleet")
    )
    return runs.drop("gpu_type").join(usual, on="node", how="left", maintain_order="left")


def lemon_nodes(runs: pl.DataFrame, basis: str, window: tuple[int, int], false_discovery: float) -> pl.DataFrame:
    """A row per node of the runs (see `runs_in`) within a window, lemons first, then by p-value, with LEMON_SCHEMA.

    placements: of its runs; single_node_*: those of attempts on one node. multi_node_failures: of attempts on several
    that the trace lays to this node; shared_multi_node_failures: it does not say to which. failures is the sum of
    single- and multi-node ones, exposure_s the time of the placements within the window, added up: two jobs side by
    side give two node-days a day. The fleet's rate is over all its nodes.

    trials, counted, expected: see the module; trials only with basis `proxy`, and only those that tell something (not
    all or none of the user's failed that day). rate_ratio with its 95 % interval: with basis `proxy` counted / expected
    (Garwood's, which is too wide where trials are few), else the node's rate of counted failures over that of the rest
    of its fleet (Clopper and Pearson's, carried over). p_value: one-sided; q_value: adjusted over all nodes with one;
    lemon: q_value is at most `false_discovery`. What cannot be computed is blank, and `reason` says why.
    """
    runs = within(runs, basis, window)
    nodes = (
        runs.group_by("node", "fleet")
        .agg(
            placements=pl.len().cast(pl.Int64),
            single_node_placements=pl.col("single").sum().cast(pl.Int64),
            single_node_failures=(pl.col("single") & pl.col("failed")).sum().cast(pl.Int64),
            multi_node_failures=(~pl.col("single") & pl.col("failed")).sum().cast(pl.Int64),
            shared_multi_node_failures=pl.col("shared").sum().cast(pl.Int64),
            failures=pl.col("failed").sum().cast(pl.Int64),
            days=pl.col("day").filter("failed").n_unique().cast(pl.Int64),
            exposure_s=pl.col("exposure_s").sum(),
        )
        .with_columns(pl.col("node", "fleet").cast(pl.String))
        .sort("node")
        .with_columns(single_node_failure_rate=_over("single_node_failures", "single_node_placements"))
    )
    if basis == "proxy":
        of_trials = compared_by_trials(trials_of(runs)).with_columns(pl.col("node").cast(pl.String))
        tested = nodes.join(of_trials, on="node", how="left", maintain_order="left")
        no_test = pl.when(pl.col("p_value").is_null()).then(
            pl.lit("no trial tells it from other nodes: no user was on several nodes on a day and failed on some only")
        )
    else:
        tested = compared_by_exposure(nodes.with_columns(counted="days"))
        no_test = _no_exposure_test()
    return _judged(tested.with_columns(reason=no_test, basis=pl.lit(basis)), false_discovery, window)


def lemon_components(lives: pl.DataFrame, fleet_by: str, false_discovery: float) -> pl.DataFrame:
    """The same of a component trace whose units are nodes: each over its whole time in service, within its fleet.

    lives: infra lives of components, with the column `fleet_by`. They bear no dates, so there is no window. out_count
    is the node's outages, which are its failures; counted leaves out those within a day of the repair before.
    """
    again = (pl.col("duration_s") < SECONDS_A_DAY) & (pl.int_range(pl.len()).over("unit_id") > 0)
    failed = (pl.col("event") == EVENT).fill_null(False)
    nodes = (
        lives.filter(pl.col("duration_s").is_not_null())
        .with_columns(failed=failed, counts=failed & ~again)
        .group_by(node=pl.col("unit_id"))
        .agg(
            fleet=pl.col(fleet_by).first().cast(pl.String).fill_null("unknown"),
            out_count=pl.col("failed").sum().cast(pl.Int64),
            failures=pl.col("failed").sum().cast(pl.Int64),
            counted=pl.col("counts").sum().cast(pl.Int64),
            exposure_s=pl.col("duration_s").sum(),
        )
        .sort("node")
    )
    tested = compared_by_exposure(nodes).with_columns(reason=_no_exposure_test(), basis=pl.lit("component"))
    return _judged(tested, false_discovery, None)


def trials_of(runs: pl.DataFrame) -> pl.DataFrame:
    """node, stratum (a number), failed: what counts of runs that failures of any kind end; see the module.

    runs: node, fleet, user, day, start_s, failed, is_trial. Of equal starts the first row counts.
    """
    trials = np.flatnonzero(runs["is_trial"].to_numpy())
    trials = trials[order_by(runs["start_s"].to_numpy()[trials])]
    keys = [_codes(runs[name])[trials] for name in ("node", "user", "day")]
    order = order_by(*keys)
    first = order[first_of_each(*(key[order] for key in keys))]
    node, user, day = (key[first] for key in keys)
    trials = trials[first]
    # By user on a node, the days in order: how many had a failure before this one.
    failed = runs["failed"].to_numpy()[trials]
    failures = np.cumsum(failed) - failed
    start = first_of_each(node, user)
    kept = failures == np.repeat(failures[start], np.diff(start, append=trials.size))
    trials = trials[kept]
    stratum = numbered(_codes(runs["fleet"])[trials], user[kept], day[kept])
    return runs[trials].select("node", "failed", stratum=pl.Series(stratum))


def compared_by_trials(trials: pl.DataFrame) -> pl.DataFrame:
    """node, trials, counted, expected, p_value, rate_ratio, ci_low, ci_high of the nodes with a trial that tells.

    trials: node, stratum, failed (Boolean), a node at most once a stratum. Strata of which all or none failed are left
    out. With chance K / M in a stratum of M trials and K failures, p_value is P(X >= counted) for the sum X of the
    node's chances (Poisson-binomial), expected its mean.
    """
    told = trials.with_columns(
        chance=pl.col("failed").sum().over("stratum") / pl.len().over("stratum"),
    ).filter((pl.col("chance") > 0) & (pl.col("chance") < 1))
    by_node = (
        told.group_by("node")
        .agg(
            trials=pl.len().cast(pl.Int64),
            counted=pl.col("failed").sum().cast(pl.Int64),
            # In order of size, so that the sum does not depend on the rows' order.
            chances=pl.col("chance").sort(),
        )
        .sort(pl.col("node").cast(pl.String))
    )
    expected = by_node["chances"].list.sum()
    p_value = poisson_binomial_tail(by_node["chances"].to_list(), by_node["counted"].to_list())
    ratios = [_standardised(count, mean) for count, mean in zip(by_node["counted"], expected, strict=True)]
    return by_node.drop("chances").with_columns(
        expected=expected,
        p_value=pl.Series(p_value, dtype=pl.Float64),
        **{
            name: pl.Series([row[place] for row in ratios], dtype=pl.Float64)
            for place, name in enumerate(("rate_ratio", "ci_low", "ci_high"))
        },
    )


def compared_by_exposure(nodes: pl.DataFrame) -> pl.DataFrame:
    """The nodes with expected, p_value, rate_ratio, ci_low, ci_high: counted failures against the fleet's, by exposure.

    nodes: fleet, counted and exposure_s (Int64). With K failures in a fleet of exposure E, a node of exposure e has
    Binomial(K, e / E) of them: p_value is P(X >= counted). The interval of e / E from `counted` of K (Clopper-Pearson),
    carried over by w / (1 - w) x (E - e) / e, is that of the ratio to the rest of the fleet. Blank without exposure,
    and where the fleet is this node alone or has no failure; no ratio where the rest has no failure.
    """
    sums = nodes.with_columns(
        fleet_counted=pl.col("counted").sum().over("fleet"), fleet_s=pl.col("exposure_s").sum().over("fleet")
    )
    counted, total = sums["counted"].to_numpy(), sums["fleet_counted"].to_numpy()
    exposure, whole = sums["exposure_s"].to_numpy(), sums["fleet_s"].to_numpy()
    can = (exposure > 0) & (exposure < whole) & (total > 0)
    k, n, e = counted[can], total[can], exposure[can] / whole[can]
    rest = (1 - e) / e
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = k / (n - k) * rest
        tail = (1 - CONFIDENCE) / 2
        low = np.where(k > 0, betaincinv(k, n - k + 1, tail), 0.0)
        high = np.where(k < n, betaincinv(k + 1, n - k, 1 - tail), np.nan)
        found = {
            "expected": n * e,
            "p_value": np.where(k > 0, betainc(k, n - k + 1, e), 1.0),
            "rate_ratio": np.where(k < n, ratio, np.nan),
            "ci_low": low / (1 - low) * rest,
            "ci_high": high / (1 - high) * rest,
        }
    columns = []
    for name, values in found.items():
        column = np.full(nodes.height, np.nan)
        column[can] = values
        columns.append(pl.Series(name, column).fill_nan(None))
    return nodes.hstack(columns)


def poisson_binomial_tail(chances: Sequence[Sequence[float]], counts: Sequence[int]) -> np.ndarray:
    """P(X >= k) for sums X of independent trials with these chances: one of each row of chances and count.

    Only sums of products of positive numbers are formed, so that small tails are right to the last digits. Checked
    against scipy.stats.poisson_binom, which takes a hundred times as long for a thousand nodes.
    """
    tails = np.ones(len(counts))
    order = sorted((row for row, count in enumerate(counts) if count > 0), key=lambda row: len(chances[row]))
    for start in range(0, len(order), _BLOCK):
        rows = order[start : start + _BLOCK]
        k = np.array([counts[row] for row in rows])
        padded = np.zeros((len(rows), len(chances[rows[-1]])))
        for place, row in enumerate(rows):
            padded[place, : len(chances[row])] = chances[row]
        # reached[i, j]: the chance of j failures so far, counted so that k of the row stand in the last place, a state
        # of k and more that is not left again.
        reached = np.zeros((len(rows), k.max() + 1))
        reached[np.arange(len(rows)), k.max() - k] = 1
        for p in padded.T:
            moved = reached[:, :-1] * p[:, None]
            reached[:, :-1] -= moved
            reached[:, 1:] += moved
        tails[rows] = reached[:, -1]
    return tails


def benjamini_hochberg(p_values: np.ndarray) -> np.ndarray:
    """The p-values (one at least) adjusted for the rate of false discoveries among them (1995)."""
    # Not scipy.stats, whose import takes as long as all the tests here; the tests compare the two.
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * (order.size / np.arange(1, order.size + 1))
    adjusted = np.empty(order.size)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.minimum(adjusted, 1)


def halves_of(window: tuple[int, int]) -> list[tuple[int, int]]:
    """The first and the second half of a window."""
    middle = (window[0] + window[1]) // 2
    return [(window[0], middle), (middle, window[1])]


def halves_of_lives(lives: pl.DataFrame) -> list[pl.DataFrame]:
    """The lives of the first and of the second half of each unit's time at risk; one across the middle is cut there.

    The part before the cut is censored, the part after it ends as the life did.
    """
    lives = lives.filter(pl.col("duration_s").is_not_null()).with_columns(
        until=pl.col("duration_s").cum_sum().over("unit_id"), half=pl.col("duration_s").sum().over("unit_id") // 2
    )
    since = pl.col("until") - pl.col("duration_s")
    lives = lives.with_columns(before_s=(pl.col("half") - since).clip(0, pl.col("duration_s")))
    is_whole = pl.col("before_s") == pl.col("duration_s")
    first = lives.with_columns(duration_s="before_s", event=pl.when(is_whole).then("event")).filter(
        pl.col("before_s") > 0
    )
    second = lives.with_columns(duration_s=pl.col("duration_s") - pl.col("before_s")).filter(pl.col("duration_s") > 0)
    return [half.drop("until", "half", "before_s") for half in (first, second)]


def lemon_effect(whole: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The fleet's mean time to failure with and without its lemons: EFFECT_SCHEMA, two rows.

    whole, first, second: lemon tables of the whole window and of its halves. Picked and measured on the same window,
    lemons look worse than they are, since bad luck is part of why they were picked; picked on the first half and
    measured on the second they show what pulling them would have brought. mttf_s: node time per failure of its own
    (`failures`), with Garwood's 95 % interval; mttf_ratio: without over with. Blank where there is no lemon or no
    failure, and `reason` says why.
    """
    rows = []
    for picked_on, measured_on, picked, measured in ((WHOLE, WHOLE, whole, whole), (FIRST, SECOND, first, second)):
        lemons = picked.filter(pl.col("lemon").fill_null(False))["node"]
        rest = measured.filter(~pl.col("node").is_in(lemons.implode()))
        row = {
            "picked_on": picked_on,
            "measured_on": measured_on,
            "nodes": measured.height,
            "lemons": lemons.len(),
        } | _mean_time(measured, "")
        if lemons.is_empty():
            row["reason"] = f"no lemon found in the {picked_on}"
        elif rest.is_empty():
            row["reason"] = "no node is left"
        else:
            row |= _mean_time(rest, "_without")
            if row["mttf_s"] and row.get("mttf_without_s"):
                row["mttf_ratio"] = row["mttf_without_s"] / row["mttf_s"]
            else:
                row["reason"] = "no failure is left to measure a mean by"
        rows.append(row)
    return pl.DataFrame([{name: row.get(name) for name in EFFECT_SCHEMA} for row in rows], schema=EFFECT_SCHEMA)


def _over(count: str, of: str) -> pl.Expr:
    return pl.when(pl.col(of) > 0).then(pl.col(count) / pl.col(of))


def _no_exposure_test() -> pl.Expr:
    alone = pl.col("exposure_s") == pl.col("exposure_s").sum().over("fleet")
    return (
        pl.when(pl.col("exposure_s") == 0)
        .then(pl.lit("no time at risk is known"))
        .when(alone)
        .then(pl.lit("no other node of its fleet to compare it with"))
        .when(pl.col("p_value").is_null())
        .then(pl.lit("no failure in its fleet"))
        .when(pl.col("rate_ratio").is_null())
        .then(pl.lit("no failure in the rest of its fleet: lower limit of the ratio only"))
    )


def _judged(tested: pl.DataFrame, false_discovery: float, window: tuple[int, int] | None) -> pl.DataFrame:
    """The tested nodes with rates, q-values and the verdict, in the form of the contract."""
    p_values = tested["p_value"].drop_nulls().to_numpy()
    q_values = np.full(tested.height, np.nan)
    if p_values.size:
        q_values[tested["p_value"].is_not_null().to_numpy()] = benjamini_hochberg(p_values)
    per_1000 = 1000 * SECONDS_A_DAY
    fleet_rate = pl.col("failures").sum().over("fleet") * per_1000 / pl.col("exposure_s").sum().over("fleet")
    low, high = window or (None, None)
    table = (
        tested.with_columns(q_value=pl.Series(q_values).fill_nan(None))
        .with_columns(
            lemon=pl.col("q_value") <= false_discovery,
            failures_per_1000_node_days=pl.when(pl.col("exposure_s") > 0).then(
                pl.col("failures") * per_1000 / pl.col("exposure_s")
            ),
            fleet_failures_per_1000_node_days=pl.when(pl.col("exposure_s").sum().over("fleet") > 0).then(fleet_rate),
            window_from_s=pl.lit(low, dtype=pl.Int64),
            window_to_s=pl.lit(high, dtype=pl.Int64),
        )
        .sort("lemon", "p_value", "node", descending=[True, False, False], nulls_last=True)
    )
    blanks = [pl.lit(None, dtype).alias(name) for name, dtype in LEMON_SCHEMA.items() if name not in table.columns]
    return table.with_columns(blanks).select(pl.col(name).cast(dtype) for name, dtype in LEMON_SCHEMA.items())


def _standardised(counted: int, expected: float) -> tuple[float, float, float]:
    """Counted over expected with Garwood's interval of the count."""
    low, high = garwood_interval(1.0, counted, CONFIDENCE)
    # An exposure of 1 per failure: the interval of a count is the reciprocal of that of the mean time.
    return counted / expected, (0.0 if high is None else 1 / high) / expected, 1 / low / expected


def _mean_time(nodes: pl.DataFrame, suffix: str) -> dict:
    failures = int(nodes["failures"].sum())
    exposure_s = int(nodes["exposure_s"].sum())
    row = {f"failures{suffix}": failures, f"exposure{suffix}_s": exposure_s}
    if exposure_s == 0:
        return row | {f"mttf{suffix}_s": None}
    low, high = garwood_interval(exposure_s, failures, CONFIDENCE)
    mean = exposure_s / failures if failures else None
    return row | {f"mttf{suffix}_s": mean, f"ci_low{suffix}_s": low, f"ci_high{suffix}_s": high}
