"""Simulate how often the study's intervals cover the truth and its tests reject true nulls: docs/coverage.md.

usage: coverage.py FILE [REPETITIONS]   (make coverage; default: 2,000 repetitions, about 10 min)

The number of jobs per user follows Zipf's law. Failure rates and run times differ between users by lognormal factors.
The truth is that of the population from which users are drawn. NumPy draws the data; the intervals and tests are the
study's own. `ttf.stats.clustered` takes all repetitions at once, as strata.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl

sys.path.append(str(Path(__file__).parent))

import coverage_changes
import coverage_drains
import coverage_faults
import coverage_node_errors
import coverage_outages
import coverage_requests
import coverage_weeks
from scipy.optimize import brentq
from scipy.special import expit, gamma, ndtr
from ttf.analyses.large_runs.plan_ettr.compute import plan_tables, queue_of
from ttf.analyses.time_to_failure.judge_lifetimes.compute import FALLING
from ttf.records.clusters import DAY_S, add_clusters, add_levels
from ttf.stats import predictions
from ttf.stats.basics.median import median_interval
from ttf.stats.clustered import Clusters
from ttf.stats.durations.mttf import garwood_interval, poisson_limits
from ttf.stats.durations.strata import iterate_times
from ttf.stats.large_runs.ettr import ettr_renewal
from ttf.stats.large_runs.plans import Habits, NodeRate
from ttf.stats.lifetimes.lifetime_models import fit_weibull
from ttf.stats.lifetimes.lifetime_sample import Sample
from ttf.stats.lifetimes.pooled_shapes import fit_shapes
from ttf.stats.nodes.excess_failures import USUAL_CV, compare_by_exposure, with_verdict
from ttf.stats.shares import wilson_interval

CONFIDENCE, SIGNIFICANCE, Z_95 = 0.95, 0.05, 1.959963984540054
HOUR = 3_600
# Repetitions per batch.
BLOCK = 200
SEED = 15


@dataclass(frozen=True)
class World:
    """Parameters of the simulated traces.

    spread: log SD of users' failure rates (median `rate`, per second) and of their run times (median one hour). zipf:
    exponent of the users' sizes; None: lognormal sizes, log SD 1.5. run_times: lognormal (log SD 1.5), exponential or
    weibull (shape 0.5).
    """

    users: int
    jobs: int
    spread: float = 1.0
    zipf: float | None = 0.9
    run_times: str = "lognormal"
    rate: float = 1 / (10 * HOUR)

    def draw_sizes(self, rng: np.random.Generator, traces: int) -> np.ndarray:
        """Draw the number of jobs by trace and user, at least one each."""
        weights = np.exp(rng.normal(0, 1.5, (traces, self.users)))
        if self.zipf is not None:
            weights = np.broadcast_to(np.arange(1, self.users + 1) ** -self.zipf, weights.shape)
        return 1 + rng.multinomial(self.jobs - self.users, weights / weights.sum(axis=1, keepdims=True))

    def draw_run_times(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw run times of a user of factor 1, in seconds; the median is an hour."""
        if self.run_times == "lognormal":
            return HOUR * np.exp(rng.normal(0, 1.5, size))
        shape = self.shape
        return HOUR * (rng.exponential(size=size) / np.log(2)) ** (1 / shape)

    @property
    def shape(self) -> float:
        return {"exponential": 1.0, "weibull": 0.5}[self.run_times]

    @property
    def mean(self) -> float:  # of the run times of a user of factor 1
        if self.run_times == "lognormal":
            return HOUR * np.exp(1.5**2 / 2)
        return HOUR * gamma(1 + 1 / self.shape) / np.log(2) ** (1 / self.shape)

    def survival(self, time: np.ndarray) -> np.ndarray:
        """Return the share of a factor-1 user's jobs that run longer than `time`."""
        if self.run_times == "lognormal":
            return ndtr(-np.log(time / HOUR) / 1.5)
        return np.exp(-np.log(2) * (time / HOUR) ** self.shape)


@dataclass(frozen=True)
class Truth:
    share: float
    mttf: float
    mean: float
    median: float


def truth(world: World) -> Truth:
    """Compute the population's true values by quadrature over users' factors and run times."""
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    weights /= weights.sum()
    rate = world.rate * np.exp(world.spread * points)[:, None, None]
    factor = np.exp(world.spread * points)[None, :, None]
    # Share failed: the integral of rate e^(-rate t) P(run time > t), over the log of t.
    logs = np.linspace(np.log(1e-6), np.log(1e12), 2_001)
    time = np.exp(logs)[None, None, :]
    step = logs[1] - logs[0]
    running = np.exp(-rate * time) * world.survival(time / factor)
    joint_weights = weights[:, None] * weights[None, :]
    exposure = float((joint_weights * (running * time).sum(axis=2)).sum() * step)
    failures = float((joint_weights * (rate * running * time).sum(axis=2)).sum() * step)
    median = brentq(lambda t: weights @ world.survival(np.exp(t) / factor[0, :, 0]) - 0.5, 0, np.log(1e9))
    mean = world.mean * np.exp(world.spread**2 / 2)
    return Truth(failures, exposure / failures, mean, np.exp(median))


def traces(world: World, rng: np.random.Generator, repetitions: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield batches of traces: (jobs by trace and user, user of each job over all traces, run time, failure time)."""
    for first in range(0, repetitions, BLOCK):
        sizes = world.draw_sizes(rng, min(BLOCK, repetitions - first))
        user = np.repeat(np.arange(sizes.size), sizes.ravel())
        rate, factor = np.exp(world.spread * rng.normal(size=(2, sizes.size)))
        run_time = factor[user] * world.draw_run_times(rng, user.size)
        yield sizes, user, run_time, rng.exponential(size=user.size) / (world.rate * rate[user])


# Per estimate: coverage of the interval that assumes independence; coverage of the clustered interval where one
# exists; the share of traces that have one.
Covered = dict[str, tuple[float, float, float]]


def coverage(world: World, repetitions: int, seed: int = SEED) -> Covered:
    """Simulate the coverage of the 95 % intervals of a share, a mean time to failure, a mean and a median."""
    rng, truths, hits_by_estimate = np.random.default_rng(seed), truth(world), {}
    for sizes, user, run_time, to_failure in traces(world, rng, repetitions):
        for name, hits in _interval_hits(truths, sizes, user, run_time, to_failure).items():
            hits_by_estimate.setdefault(name, []).append(hits)
    return {name: _hit_shares(np.concatenate(blocks, axis=1)) for name, blocks in hits_by_estimate.items()}


def _hit_shares(hits: np.ndarray) -> tuple[float, float, float]:
    exact, robust, defined = hits.mean(axis=1).tolist()
    return exact, robust / defined, defined


def _interval_hits(
    truths: Truth, sizes: np.ndarray, user: np.ndarray, run_time: np.ndarray, to_failure: np.ndarray
) -> dict:
    """Map each estimate to rows with a column per trace: exact interval covers, clustered one covers, it exists."""
    n = sizes.sum(axis=1)
    trace_index = np.repeat(np.arange(len(sizes)), sizes.shape[1])
    members = sizes.ravel().astype(float)
    clusters = Clusters(trace_index, members, len(sizes))

    def sum_by_user(values: np.ndarray) -> np.ndarray:
        return np.bincount(user, weights=values, minlength=members.size)

    failures, exposure = sum_by_user(to_failure <= run_time), sum_by_user(np.minimum(to_failure, run_time))
    total, squares = sum_by_user(run_time), clusters.sum(sum_by_user(run_time**2))
    failed, at_risk, mean = clusters.sum(failures), clusters.sum(exposure), clusters.sum(total) / n
    sorted_run_times = np.sort(run_time.reshape(len(sizes), -1), axis=1)
    middle = sorted_run_times[:, (n[0] - 1) // 2]
    ranks = clusters.around_the_middle(sum_by_user(run_time <= middle[trace_index[user]]), members, CONFIDENCE)
    # A median's interval covers the truth if the share of jobs below the truth lies between the interval's ranks.
    share_below = (sorted_run_times <= truths.median).mean(axis=1)
    values = [median_interval(int(n[0]), times.__getitem__) for times in sorted_run_times]
    margin = Z_95 * np.sqrt((squares / n - mean**2) / n)
    intervals = {
        "share": (truths.share, wilson_interval(failed, n), clusters.proportion(failures, members, CONFIDENCE)),
        "mean time to failure": (
            truths.mttf,
            [at_risk / limit for limit in poisson_limits(failed, CONFIDENCE)[::-1]],
            clusters.ratio(exposure, failures, CONFIDENCE, has_mean_leverage=True),
        ),
        "mean": (truths.mean, (mean - margin, mean + margin), clusters.ratio(total, members, CONFIDENCE)),
    }
    hits = {
        name: (_between(true_value, *exact), _between(true_value, *robust[:2]))
        for name, (true_value, exact, robust) in intervals.items()
    }
    hits["median"] = _between(truths.median, *np.transpose(values)), _between(share_below, *ranks[:2])
    limits = {name: robust for name, (_, _, robust) in intervals.items()} | {"median": ranks}
    return {name: [*hits[name], np.isfinite(limits[name]).all(axis=0)] for name in hits}


def _between(value: np.ndarray | float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return (low <= value) & (value <= high)


def simulate_durations(world: World, rng: np.random.Generator) -> pl.DataFrame:
    """Draw one trace as durations, with a GPU type and a month that each user prefers and that have no effect."""
    ((_, user, run_time, to_failure),) = traces(world, rng, 1)
    return add_clusters(
        pl.DataFrame(
            {
                "user": pl.Series(user).cast(pl.String),
                "duration_s": np.minimum(run_time, to_failure).astype(np.int64),
                "event": np.where(to_failure <= run_time, "failure", "success"),
                "gpu_type": _preferred(rng, user, ["A", "B", "C"]),
                "submit_s": 30 * 86_400 * _preferred(rng, user, [0, 1]) + rng.integers(0, 30 * 86_400, user.size),
            }
        )
    )


def _preferred(rng: np.random.Generator, user: np.ndarray, choices: list) -> np.ndarray:
    """Draw a choice for each job: its user's usual one in four of five, else a random one."""
    usual, random = rng.choice(choices, user.max() + 1)[user], rng.choice(choices, user.size)
    return np.where(rng.random(user.size) < 0.8, usual, random)


def _logrank(durations: pl.DataFrame) -> pl.DataFrame:
    test = import_module("ttf.analyses.factors.estimate_hazards.compute").logrank
    return test(durations, "failure", ["gpu_type"]).filter(kind="overall")


def _cox(durations: pl.DataFrame) -> pl.DataFrame:
    test = import_module("ttf.analyses.factors.estimate_hazards.hazard_ratios").hazard_ratios
    return test(durations, "failure", ["gpu_type"]).drop_nulls("p_value").sort("level").head(1)


_P_VALUES = {"p_value": pl.Float64, "p_clustered": pl.Float64}


def _drift(durations: pl.DataFrame) -> pl.DataFrame:
    drift = import_module("ttf.analyses.quality.measure_drift.compute")
    jobs = durations.rename({"event": "outcome", "duration_s": "runtime_s"})
    blank = dict.fromkeys(set(drift.NUMBERS) - set(jobs.columns), pl.lit(None, dtype=pl.Int64))
    jobs = jobs.with_columns(**blank)
    (row,) = (row for row in drift.by_window(jobs, "month") if row["statistic"] == "failure_share")
    return pl.DataFrame([{name: row.get(name) for name in ("p_value", "p_clustered")}], schema_overrides=_P_VALUES)


# Each test returns a row with p_value and p_clustered, from the durations of a trace in which the null is true.
NULLS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "log-rank, three GPU types": _logrank,
    "Cox, a GPU type's ratio": _cox,
    "drift of the failure share": _drift,
}


def rejections(world: World, name: str, repetitions: int, seed: int = SEED) -> tuple[float, float]:
    """Simulate how often a true null is rejected at .05: by the p-value under independence and by the clustered one."""
    rng = np.random.default_rng(seed)
    rows = pl.concat([NULLS[name](simulate_durations(world, rng)) for _ in range(repetitions)])
    exact, robust = ((rows[p] < SIGNIFICANCE).mean() for p in ("p_value", "p_clustered"))
    return exact, robust


def within_user_shape(world: World, shape: float, repetitions: int, seed: int = SEED) -> dict[str, float]:
    """Simulate the Weibull shape within users: its mean, its coverage, and how often the rate is said to fall."""
    rng, rows, pooled_fits = np.random.default_rng(seed), [], []
    failed = {"failure": pl.col("event") == "failure"}
    for _ in range(repetitions):
        ((_, user, run_time, to_failure),) = traces(world, rng, 1)
        # The hazard of each user is a power of age.
        to_failure = (to_failure * world.rate) ** (1 / shape) / world.rate
        durations = pl.DataFrame({"user": user, "duration_s": np.minimum(run_time, to_failure).astype(np.int64)})
        durations = add_clusters(durations.with_columns(event=np.where(to_failure <= run_time, "failure", "success")))
        rows.append(fit_shapes(durations, failed, ["all"])["failure", "all", "all"])
        (times,) = (times for _, times in iterate_times(durations, "failure", "all"))
        pooled_fits.append(fit_weibull(Sample.from_times(times)))
    low, high, estimates = (
        np.array([row[f"shape_within{end}"] for row in rows]) for end in ("_ci_low", "_ci_high", "")
    )
    pooled, error = (np.array([fit[name] for fit in pooled_fits]) for name in ("shape", "shape_se"))
    return {
        "pooled": pooled.mean(),
        "pooled falls": (pooled * np.exp(Z_95 * error / pooled) < 1).mean(),
        "within": estimates.mean(),
        "covered": _between(shape, low, high).mean(),
        "falls": (high < FALLING).mean(),
    }


@dataclass(frozen=True)
class Predicted:
    """Jobs with predictions.

    probability: predicted risk of failure. hours: until the job failed (observed) or last seen. predicted: hours.
    """

    user: np.ndarray
    failed: np.ndarray
    probability: np.ndarray
    worse_probability: np.ndarray
    hours: np.ndarray
    observed: np.ndarray
    predicted: np.ndarray

    @classmethod
    def simulate(cls, sizes: np.ndarray, rng: np.random.Generator) -> "Predicted":
        """Draw jobs from sizes, the jobs by user. Half of the known effect and all of the unknown one is the user's."""
        user = np.repeat(np.arange(sizes.size), sizes)

        def user_effects() -> np.ndarray:
            return rng.normal(size=sizes.size)[user]

        def job_effects() -> np.ndarray:
            return rng.normal(size=user.size)

        known_logit = (user_effects() + job_effects()) / np.sqrt(2)
        failed = rng.random(user.size) < expit(-2 + known_logit + user_effects())
        log_hours = 1 + (user_effects() + job_effects()) / np.sqrt(2)
        to_failure, to_end = log_hours + 0.7 * user_effects() + job_effects(), 2 + 1.5 * job_effects()
        return cls(
            user,
            failed,
            expit(-2 + known_logit),
            expit(-2 + known_logit + 0.8 * job_effects()),
            np.exp(np.minimum(to_failure, to_end)),
            to_failure <= to_end,
            np.exp(log_hours),
        )

    def scores(self, cluster: np.ndarray) -> dict[str, predictions.Estimate]:
        outcomes, observed = (self.failed, self.probability), self.observed
        paired = (self.failed, self.probability, [self.worse_probability], cluster, "user")
        failed_hours = (self.predicted[observed], self.hours[observed], cluster[observed], "user")
        return {
            "average precision": predictions.estimate_score("average_precision", *outcomes, cluster, "user"),
            "its difference": predictions.difference("average_precision", *paired),
            "ROC AUC": predictions.estimate_score("roc_auc", *outcomes, cluster, "user"),
            "log loss": predictions.estimate_score("log_loss", *outcomes, cluster, "user"),
            "slope": predictions.calibration(*outcomes, cluster, "user").slope,
            "concordance": predictions.concordance(self.hours, observed, self.predicted, cluster, "user"),
            "factor off": predictions.median_factor_off(*failed_hours),
            "R²": predictions.r2_log(*failed_hours),
        }


def coverage_of_scores(world: World, repetitions: int, seed: int = SEED, jobs_per_user: int = 100) -> Covered:
    """Simulate how often the 95 % intervals of prediction scores hold the scores of 10,000 users with equal jobs.

    Only the numbers of users and jobs of the world count. The exact intervals take each job as its own cluster.
    """
    rng, hits_by_score = np.random.default_rng(seed), {}
    # Users of one size represent all, because sizes and factors are independent.
    population = Predicted.simulate(np.full(10_000, jobs_per_user), np.random.default_rng(SEED))
    truths = {name: score.estimate for name, score in population.scores(population.user).items()}
    for _ in range(repetitions):
        sample = Predicted.simulate(world.draw_sizes(rng, 1)[0], rng)
        scores = [sample.scores(cluster) for cluster in (np.arange(sample.user.size), sample.user)]
        for name, value in truths.items():
            exact, robust = (estimates[name] for estimates in scores)
            hits = [_holds(exact, value), _holds(robust, value), robust.low is not None]
            hits_by_score.setdefault(name, []).append(hits)
    return {name: _hit_shares(np.transpose(hits)) for name, hits in hits_by_score.items()}


def _holds(estimate: predictions.Estimate, value: float) -> bool:
    return estimate.low is not None and estimate.low <= value <= estimate.high


def lemon_detection(
    nodes: int, failures_per_node: float, cv: float, bad_nodes: int, repetitions: int, seed: int = SEED
) -> tuple[float, float]:
    """Simulate how often any ordinary node is significant at 5 %, and the share of bad nodes that are.

    Nodes have unequal exposure and gamma rates with coefficient of variation `cv`. Bad nodes fail 18 times as often.
    """
    rng, false_alarms, detected = np.random.default_rng(seed), 0, 0
    for _ in range(repetitions):
        exposure = rng.integers(20, 28, nodes) * 86_400
        rates = rng.gamma(cv**-2, cv**2, nodes) if cv else np.ones(nodes)
        rates[:bad_nodes] *= 18
        counts = rng.poisson(failures_per_node * rates * exposure / exposure.mean())
        table = pl.DataFrame({"fleet": ["one"] * nodes, "counted": counts, "exposure_s": exposure})
        flagged = with_verdict(compare_by_exposure(table), SIGNIFICANCE)[0]["lemon"].fill_null(False).to_numpy()
        false_alarms += bool(flagged[bad_nodes:].any())
        detected += int(flagged[:bad_nodes].sum())
    return false_alarms / repetitions, detected / repetitions / max(bad_nodes, 1)


def coverage_of_ettr(sigma: float, repetitions: int, waits: int = 47, seed: int = SEED) -> tuple[float, float, float]:
    """Simulate the coverage of the 90 % interval of the ETTR of a 1,024-GPU run.

    Returns the coverage of the interval from the failure rate's bounds alone; that of the interval with the waits'
    error, where it exists; and how often it exists. About 60 failures give the rate. The mean wait comes from `waits`
    waits of 20 users, lognormal with median 4 h.
    """
    rng, per_day, mean_s = np.random.default_rng(seed), 6.5e-3, 4 * HOUR * np.exp(sigma**2 / 2)
    node_days, nodes, hits = 60 / per_day, 128, []
    true_ettr = float(ettr_renewal(Habits(HOUR, 300, 300, mean_s, 14 * DAY_S).plan(nodes * per_day / DAY_S)))
    for _ in range(repetitions):
        rows = pl.DataFrame({"start_s": (4 * HOUR * np.exp(sigma * rng.normal(size=waits))).astype(np.int64)})
        rows = rows.with_columns(
            unit_id=pl.int_range(pl.len()).cast(pl.String),
            user=pl.Series(rng.integers(0, 20, waits)),
            duration_id=1,
            submit_s=0,
            event=pl.lit(None, pl.String),
            gpu_milli=1,
        )
        queue = queue_of(add_levels(rows, {"user": ["user"]}), None)
        failures = int(rng.poisson(60))
        ends = (DAY_S / end_s for end_s in garwood_interval(node_days * DAY_S, failures, 0.9)[::-1])
        rate = NodeRate(failures / node_days, *ends, 8, None, nodes, "")
        habits = Habits(HOUR, 300, 300, queue["value"], 14 * DAY_S)
        table, _ = plan_tables(rate, [habits], [8 * nodes], 0, 1, queue)
        row_by_rate = {row["rate"]: row for row in table.iter_rows(named=True)}
        low, high = (row_by_rate["estimate"][f"ettr_ci_{end}"] for end in ("low", "high"))
        rate_only_hit = _between(true_ettr, *(row_by_rate[end]["ettr_renewal"] for end in ("high", "low")))
        hits.append((rate_only_hit, low is not None and low <= true_ettr <= high, low is not None))
    return _hit_shares(np.transpose(hits).astype(float))


BASE = World(100, 5_000)
WORLDS = {
    "100 users": BASE,
    "20 users": World(20, 2_000),
    "100 users, exponential run times": replace(BASE, run_times="exponential"),
    "100 users, Weibull run times (shape 0.5)": replace(BASE, run_times="weibull"),
    "100 users, sizes lognormal (log SD 1.5)": replace(BASE, zipf=None),
    "20 users, sizes lognormal (log SD 1.5)": World(20, 2_000, zipf=None),
    "100 users, some 37 failures in all": replace(BASE, rate=1 / (1_000 * HOUR)),
    "20 users, some 15 failures in all": World(20, 2_000, rate=1 / (1_000 * HOUR)),
    "100 users who do not differ": replace(BASE, spread=0.0),
    "20 users who do not differ": World(20, 2_000, spread=0.0),
}
# Worlds in which tests of true nulls are simulated.
TESTED = ("100 users", "20 users", "100 users who do not differ")
# Slow simulations have so many times fewer repetitions. Rates and run times of the scored worlds do not matter.
FEWER = 4
SCORED = ("100 users", "20 users", "100 users, sizes lognormal (log SD 1.5)")
SHAPES = (0.6, 0.85, 1.0)
FLEETS = (50, 200)


def as_markdown(repetitions: int) -> str:
    intervals = _table(["", *ESTIMATES, "given"], _intervals(repetitions))
    nulls = _table(["", *NULLS], _nulls(repetitions))
    scores = _table(["", *SCORES, "given"], _scores(repetitions))
    shape_heads = ["", "true shape", "over all", "falls", "within users", "holds the truth", "falls"]
    return f"""# Do the intervals hold?

Made by `make coverage` ([coverage.py](../tools/docs/coverage.py)); a test runs a smaller form of it. Each number
comes from {repetitions:,} simulated traces, so 0.95 has a standard error of
{(0.95 * 0.05 / repetitions) ** 0.5:.3f}. A trace has 5,000 jobs of 100 users, or 2,000 of 20. The jobs
per user follow Zipf's law (exponent 0.9), so there are
{_effective(100):.1f} and {_effective(20):.1f} effective users. Failure rates and run times differ between users by
lognormal factors of log SD 1. Within a user, run times are lognormal (log SD 1.5) and the failure rate is constant;
{truth(BASE).share:.0%} of the jobs fail. The first column of each table says how its traces differ from these.

## 95% CIs

The tables show how often an interval holds the true value of the population. First comes **the clustered interval**,
then in brackets the interval for independent jobs. With fewer than 4 effective clusters there is no clustered
interval. The last column is the share of traces that have one.

{intervals}

## Tests of true nulls at 0.05

The table shows how often tests reject: by **the clustered p-value**, and in brackets by the p-value for independent
jobs. GPU types have no effect, and nothing drifts. But most jobs of a user have one GPU type and one month.

{nulls}

## Scores of predictions

The table shows the coverage of intervals of prediction scores. The models know only requests; half of the variation of
requests is between users. In brackets each job is its own cluster. The difference is that to a worse model on the same
jobs. Each number comes from {repetitions // FEWER:,} traces.

{scores}

## A decreasing hazard, or a mixture

All users have one Weibull shape but different rates; if the shape is below 1, the hazard decreases. The fit over all
jobs ignores users: the columns are its mean shape, and how often its whole interval lies below 1. The fit within users
has gamma frailty, though the true rates are lognormal. Its columns are the mean shape, the coverage, and how often the
verdict is a decrease (upper bound below {FALLING}).

{_table(shape_heads, _shapes(repetitions))}

## Outages

The table shows the coverage for fleets of 400 nodes, observed for a year. A node is up for 240 days on average and
down for 5.5. Up times are exponential, repairs lognormal. In rows where nodes differ, failure rates have factors of
log SD 0.9 (gamma: variance 1). The intervals in brackets assume independent outages: Garwood's, one for the mean of
ended outages, and one for exponential times. If repairs have log SD 2, a few of them dominate the mean; so the study
also gives a restricted mean.

{_table(["", *coverage_outages.ESTIMATES, "given"], _outages(repetitions))}

## Weeks that differ

The table shows the coverage for {coverage_weeks.STEADY.jobs:,} jobs of 100 users, and for {coverage_weeks.STEADY.nodes}
nodes. All jobs of a week share a lognormal factor; AR is its correlation with that of the week before. In brackets is
the interval clustered by user only, or by node only. The last column compares widths: that of the interval by user (or
node) and week, divided by that in brackets, for each of the four. If weeks are strongly correlated, the interval
covers less than 95%: a few weeks cannot show how others would differ. It also covers less if a few nodes fail far more
often, and the observed fleet happens to have none of them. With fewer than eight weeks both are the interval by user
only, and the page marks it so: it covers too little as soon as weeks differ, and nothing in the data says by how much
they do. Each number comes from {repetitions // FEWER:,} traces.

{_table(["", *coverage_weeks.ESTIMATES, "times as wide"], _weeks(repetitions))}

A GPU type without effect comes in the middle week, and from then on half of the jobs have it. The table shows how
often tests at 0.05 say that it differs, and how often the interval of the median time to failure (Kaplan-Meier) holds
the truth. In brackets is the result by user only.

{_table(["", *coverage_weeks.LATE_TYPE], coverage_weeks.late_rows(repetitions // FEWER, SEED))}

{_faults(repetitions // FEWER)}
## ETTR

The table shows the coverage of the 90% CI of the ETTR of a 1,024-GPU run. The failure rate comes from some 60
failures, the mean wait from 47 restarts of 20 users. In brackets is the interval that assumes a known mean wait. If
one wait dominates the variance, there is no interval.

{_table(["waits", "ETTR", "given"], _ettr(repetitions))}

{_changes(repetitions // FEWER)}
{_nodes(repetitions // FEWER)}
{_node_errors(repetitions // 80)}
{_requests(repetitions // 200)}"""


GROWTH_HEADS = ["", "β", "given", "no trend rejected"]
BURST_HEADS = ["", *(f"within {name}" for name in coverage_faults.BURST_WINDOWS)]
SPARE_HEADS = ["", "90% of the time", "given", "95% of the time", "given"]
FREE_HEADS = ["", "a day", "a week", "a month"]
CVS = (0, 0.5, 1)
LEMON_HEADS = ["nodes", "failures a node", *(f"{kind}, CV {cv}" for kind in ("any", "found") for cv in CVS)]
DRAIN_HEADS = ["", "CV", "any, none bad", "any, three bad", "ordinary of those named", "bad nodes named"]
CHANGED_HEADS = ["weeks before", "log SD", "AR", "said to have changed", "has a verdict", "found, of the ratio"]
SUSPECT_HEADS = ["weeks", "failures a node and week", "said to have changed"]
FORECAST_HEADS = ["", "failures in the first week", *(f"{weeks} weeks before" for weeks in coverage_changes.WEEKS)]
SCORES = ("average precision", "its difference", "ROC AUC", "log loss", "slope", "concordance", "factor off", "R²")
ESTIMATES = ("share", "mean time to failure", "mean", "median")


def _effective(users: int) -> float:
    sizes = np.arange(1, users + 1) ** -0.9
    return sizes.sum() ** 2 / (sizes**2).sum()


def _intervals(repetitions: int) -> Iterator[list[str]]:
    for name, world in WORLDS.items():
        hits = coverage(world, repetitions)
        defined = min(hits[estimate][2] for estimate in ESTIMATES)
        yield [name, *(_cell(robust, exact) for exact, robust, _ in map(hits.get, ESTIMATES)), f"{defined:.2f}"]


def _scores(repetitions: int) -> Iterator[list[str]]:
    for name in SCORED:
        hits = coverage_of_scores(WORLDS[name], repetitions // FEWER)
        defined = min(hits[score][2] for score in SCORES)
        yield [name, *(_cell(robust, exact) for exact, robust, _ in map(hits.get, SCORES)), f"{defined:.2f}"]


def _nulls(repetitions: int) -> Iterator[list[str]]:
    for world in TESTED:
        shares = [rejections(WORLDS[world], name, repetitions) for name in NULLS]
        yield [world, *(_cell(robust, exact) for exact, robust in shares)]


def _shapes(repetitions: int) -> Iterator[list[str]]:
    for name in ("100 users", "20 users"):
        for shape in SHAPES:
            numbers = within_user_shape(WORLDS[name], shape, repetitions)
            yield [name, f"{shape:g}", *(f"{number:.3f}" for number in numbers.values())]


def _lemons(repetitions: int) -> Iterator[list[str]]:
    for nodes in FLEETS:
        for failures_per_node in (0.35, 3):
            false_alarms = [lemon_detection(nodes, failures_per_node, cv, 0, repetitions)[0] for cv in CVS]
            power = [lemon_detection(nodes, failures_per_node, cv, 3, repetitions)[1] for cv in CVS]
            cells = [f"**{share:.3f}**" for share in false_alarms] + [f"{share:.2f}" for share in power]
            yield [f"{nodes}", f"{failures_per_node:g}", *cells]


def _outages(repetitions: int) -> Iterator[list[str]]:
    for name, hits in coverage_outages.rows(repetitions, SEED):
        defined = min(defined for *_, defined in hits)
        yield [name, *(_cell(robust, exact) for exact, robust, _ in hits), f"{defined:.2f}"]


def _weeks(repetitions: int) -> Iterator[list[str]]:
    for name, hits in coverage_weeks.rows(repetitions // FEWER, SEED):
        widths = ", ".join(f"{width:.2f}" for *_, width in hits.values())
        yield [name, *(_cell(crossed, alone) for alone, crossed, *_ in hits.values()), widths]


def _ettr(repetitions: int) -> Iterator[list[str]]:
    for sigma in (1, 1.5, 2):
        exact, robust, defined = coverage_of_ettr(sigma, repetitions // FEWER)
        yield [f"log SD {sigma:g}", _cell(robust, exact), f"{defined:.2f}"]


def _nodes(repetitions: int) -> str:
    return f"""## Nodes that fail more

The rates of ordinary nodes are equal, or differ (gamma, coefficient of variation CV). The table shows how often any
ordinary node is significant at a false-discovery rate of 0.05. Three bad nodes fail 18 times as often; the table also
shows the share of them that is detected. Few false alarms have a price: with few failures, or if ordinary nodes differ
much, some bad nodes are missed. If failures do not show how much nodes differ, the test assumes a CV of {USUAL_CV}.
Without recorded causes the test assumes equal nodes, so no node is drained; `tests/unit/test_lemons.py` simulates it.
Each number comes from
{repetitions:,} traces.

{_table(LEMON_HEADS, _lemons(repetitions))}

The list of nodes to drain has the same rule, for outages. {coverage_drains.Fleet.nodes} nodes are watched for a year.
The table shows how often the list names any ordinary node if none is bad, and in brackets if the rule took ordinary
nodes as equal. With {coverage_drains.BAD_NODES} bad nodes it shows how often any ordinary node is named, the share of
the named nodes that are ordinary, and the share of the bad nodes that are named. Each number comes from
{repetitions // 5:,} fleets.

{_table(DRAIN_HEADS, coverage_drains.rows(repetitions // 5, SEED))}
"""


def _changes(repetitions: int) -> str:
    return f"""## Changes and forecasts

The weeks of {coverage_changes.USERS} users differ, but nothing changes in the last one. The table shows how often the
study reports a change of failure share or rate (Holm). It also shows how often the study detects a rate that changed
by the detectable ratio. With fewer than four earlier weeks there is no verdict. Each number comes from {repetitions:,}
traces.

{_table(CHANGED_HEADS, coverage_changes.change_rows(repetitions, SEED))}

Three of 200 nodes always fail 18 times as often as the others. The table shows how often the study reports a change of
suspect nodes in the last week:

{_table(SUSPECT_HEADS, coverage_changes.suspect_rows(repetitions, SEED))}

The table shows how often the next week lies within its 90% prediction interval:

{_table(FORECAST_HEADS, coverage_changes.forecast_rows(repetitions, SEED))}
"""


def _faults(repetitions: int) -> str:
    return f"""## Faults over time

A fleet is observed for a year, at a constant rate unless the row says otherwise. The columns are the coverage of the
interval of the growth β, clustered by blocks of time, and how often the test rejects a constant rate. If β is below
1, most faults lie in the first weeks, so there may be no interval. Each number comes from {repetitions:,} fleets.

{_table(GROWTH_HEADS, coverage_faults.growth_rows(repetitions, SEED))}

New nodes fail more often; a year later the excess is gone. The table shows how often the study says that the faults of
{coverage_faults.Units(1).nodes} nodes become more or less frequent. In brackets is how often they do so if the first
year of each node counts too: those verdicts are marked unclear. A true trend of a year is always unclear. Each number
comes from {repetitions // 2:,} fleets.

{_table(["", "said to have a trend"], coverage_faults.ageing_rows(repetitions // 2, SEED))}

400 nodes fail 500 times in 26 weeks, independently. The table shows how often the study reports bursts: if all three
simulations must agree (exchanged, shifted and jittered times), and in brackets if shifted histories alone decide.

{_table(BURST_HEADS, coverage_faults.burst_table_rows(repetitions // 2, SEED))}

400 nodes are up for 240 days on average and down for 5.5. The table shows the coverage of the interval of the largest
number of nodes down for 90 and 95% of the time; the truth is the binomial. It also gives the share of fleets with an
interval. If hardly any fleet has an interval, the few that do happen to have short outages.

{_table(SPARE_HEADS, coverage_faults.spare_rows(repetitions, SEED))}

100 nodes fail every 60 days on average over 26 weeks; their rates differ by factors of log SD 0.9. The table shows the
coverage of the share of nodes that have no outage for the given time after a random moment.

{_table(FREE_HEADS, coverage_faults.outage_free_rows(repetitions // 2, SEED))}
"""


def _node_errors(repetitions: int) -> str:
    heads = ["", "precedes failures", "p below 0.05", "holds the ratio", "given"]
    cause_heads = ["", "attributed without effect", "false failures", "attributed with effect", "its failures"]
    world = coverage_node_errors.World()
    return f"""## Errors in the logs of nodes

{world.nodes} nodes run four attempts at a time for {world.days} days, and logs have {world.codes} codes of
{world.errors} errors each. Failure rates differ between users (log SD {world.user_spread:g}) and nodes
({world.node_spread:g}), error rates between nodes ({world.code_spread:g}). In a week one user has most of a node.
Errors are independent of attempts, or multiply their failure rate for {coverage_node_errors.WINDOW_S} s. The columns
are the share of codes said to precede failures (Holm), the share of p-values below 0.05, the coverage of the 95% CI of
the ratio, and how often it is given. Each number comes from {repetitions * world.codes:,} codes.

{_table(heads, coverage_node_errors.rows(repetitions, SEED))}

In the worlds below, {world.codes // 2} codes without effect are written where attempts fail, and a code with effect
ends half of the attempts that it hits within 4 minutes. Attempts fail early (Weibull shape 0.5 if not named). The
columns are the share of codes without effect to which failures are attributed, the share of attributed failures that
the code with effect did not cause, how often failures are attributed to the code with effect, and the share of its
failures that are. Each row is {repetitions * 2 // 5} traces, of 8 nodes where a code is written in every attempt: there
the code with effect often hits fewer than 4 effective nodes, and has no test.

{_table(cause_heads, coverage_node_errors.cause_rows(repetitions * 2 // 5, SEED))}
"""


def _requests(repetitions: int) -> str:
    return f"""## Next requests

{coverage_requests.TEXT} Each row comes from {repetitions * coverage_requests.GROUPS:,} groups.

{_table(coverage_requests.HEADS, coverage_requests.request_rows(repetitions, SEED))}
"""


def _cell(robust: float, exact: float) -> str:
    return f"**{robust:.3f}** ({exact:.3f})"


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(as_markdown(int(sys.argv[2]) if len(sys.argv) > 2 else 2_000), encoding="utf-8")
