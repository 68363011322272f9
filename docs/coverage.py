"""docs/coverage.md: how often the intervals of the study hold the truth, and its tests reject true nulls.

usage: coverage.py FILE [REPETITIONS]   (make coverage; 2,000 repetitions unless told, some 10 min)

The jobs of the simulated traces are of users whose sizes follow Zipf's law and whose failure rates and run times differ
by lognormal factors. Truths are those of the population that the users are drawn from. Data are made by NumPy; every
interval and test is the study's own: `ttf.stats.clustered` takes all repetitions at once, as strata.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
sys.path.append(str(Path(__file__).parent))

import coverage_changes
import coverage_faults
import coverage_outages
import coverage_weeks
from scipy.optimize import brentq
from scipy.special import expit, gamma, ndtr
from ttf.analyses.large_runs.plan_ettr.compute import plan_tables, queue_of
from ttf.analyses.nodes.find_lemon_nodes.compute import with_verdict
from ttf.analyses.nodes.find_lemon_nodes.excess import USUAL_CV, compared_by_exposure
from ttf.analyses.time_to_failure.fit_mttf.lifetime_sample import Sample
from ttf.analyses.time_to_failure.fit_mttf.lifetimes import weibull
from ttf.analyses.time_to_failure.judge_lifetimes.compute import FALLING
from ttf.analyses.time_to_failure.judge_lifetimes.pooled_shapes import shapes
from ttf.records.clusters import DAY_S, with_clusters, with_levels
from ttf.stats import predictions
from ttf.stats.basics.median import median_interval
from ttf.stats.clustered import Clusters
from ttf.stats.durations.mttf import garwood_interval, poisson_limits
from ttf.stats.durations.strata import times_by_stratum
from ttf.stats.large_runs.ettr import ettr_renewal
from ttf.stats.large_runs.plans import Habits, NodeRate
from ttf.stats.shares import wilson_interval

CONFIDENCE, SIGNIFICANCE, Z_95 = 0.95, 0.05, 1.959963984540054
HOUR = 3_600
# Repetitions made at a time.
BLOCK = 200
SEED = 15


@dataclass(frozen=True)
class World:
    """What traces are made of. spread: the log SD of users' rates, and of their run times, whose medians are rate (per
    second) and an hour; zipf: None, lognormal sizes of log SD 1.5; run_times: lognormal (log SD 1.5), exponential or
    weibull (shape 0.5)."""

    users: int
    jobs: int
    spread: float = 1.0
    zipf: float | None = 0.9
    run_times: str = "lognormal"
    rate: float = 1 / (10 * HOUR)

    def sizes(self, rng: np.random.Generator, traces: int) -> np.ndarray:
        """Jobs by trace and user, one or more each."""
        weights = np.exp(rng.normal(0, 1.5, (traces, self.users)))
        if self.zipf is not None:
            weights = np.broadcast_to(np.arange(1, self.users + 1) ** -self.zipf, weights.shape)
        return 1 + rng.multinomial(self.jobs - self.users, weights / weights.sum(axis=1, keepdims=True))

    def run_time(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Of a user of factor 1, in seconds; the median is an hour."""
        if self.run_times == "lognormal":
            return HOUR * np.exp(rng.normal(0, 1.5, size))
        shape = self.shape
        return HOUR * (rng.exponential(size=size) / np.log(2)) ** (1 / shape)

    @property
    def shape(self) -> float:
        return {"exponential": 1.0, "weibull": 0.5}[self.run_times]

    @property
    def mean(self) -> float:
        """Of the run times of a user of factor 1."""
        if self.run_times == "lognormal":
            return HOUR * np.exp(1.5**2 / 2)
        return HOUR * gamma(1 + 1 / self.shape) / np.log(2) ** (1 / self.shape)

    def longer(self, time: np.ndarray) -> np.ndarray:
        """The share of the jobs of a user of factor 1 that run longer."""
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
    """Of the population of users: by quadrature over their factors and the run times."""
    at, weight = np.polynomial.hermite_e.hermegauss(40)
    weight /= weight.sum()
    rate = world.rate * np.exp(world.spread * at)[:, None, None]
    factor = np.exp(world.spread * at)[None, :, None]
    # Failed by the time t: the integral of rate e^(-rate t) P(run time > t), over the log of t.
    logs = np.linspace(np.log(1e-6), np.log(1e12), 2_001)
    time = np.exp(logs)[None, None, :]
    step = logs[1] - logs[0]
    running = np.exp(-rate * time) * world.longer(time / factor)
    both = weight[:, None] * weight[None, :]
    exposure = float((both * (running * time).sum(axis=2)).sum() * step)
    failures = float((both * (rate * running * time).sum(axis=2)).sum() * step)
    median = brentq(lambda t: weight @ world.longer(np.exp(t) / factor[0, :, 0]) - 0.5, 0, np.log(1e9))
    mean = world.mean * np.exp(world.spread**2 / 2)
    return Truth(failures, exposure / failures, mean, np.exp(median))


def traces(world: World, rng: np.random.Generator, number: int) -> Iterator[tuple[np.ndarray, ...]]:
    """(jobs by trace and user, user of each job counted through the traces, run time, failure time) of some at once."""
    for first in range(0, number, BLOCK):
        sizes = world.sizes(rng, min(BLOCK, number - first))
        user = np.repeat(np.arange(sizes.size), sizes.ravel())
        rate, factor = np.exp(world.spread * rng.normal(size=(2, sizes.size)))
        run_time = factor[user] * world.run_time(rng, user.size)
        yield sizes, user, run_time, rng.exponential(size=user.size) / (world.rate * rate[user])


# Of an estimate: how often the interval that supposes independence holds the truth; how often the clustered one, of
# the traces that have one; and in how many these are.
Covered = dict[str, tuple[float, float, float]]


def coverage(world: World, repetitions: int, seed: int = SEED) -> Covered:
    """How often the 95 % intervals of a share, a mean time to failure, a mean and a median hold the truth."""
    rng, true, held = np.random.default_rng(seed), truth(world), {}
    for sizes, user, run_time, to_failure in traces(world, rng, repetitions):
        for name, inside in _inside(true, sizes, user, run_time, to_failure).items():
            held.setdefault(name, []).append(inside)
    return {name: _counted(np.concatenate(each, axis=1)) for name, each in held.items()}


def _counted(inside: np.ndarray) -> tuple[float, float, float]:
    exact, robust, given = inside.mean(axis=1).tolist()
    return exact, robust / given, given


def _inside(true: Truth, sizes: np.ndarray, user: np.ndarray, run_time: np.ndarray, to_failure: np.ndarray) -> dict:
    """Estimate -> three rows, a column for each trace: whether the exact and the clustered interval hold the truth, and
    whether there is a clustered one."""
    n = sizes.sum(axis=1)
    place = np.repeat(np.arange(len(sizes)), sizes.shape[1])
    members = sizes.ravel().astype(float)
    clusters = Clusters(place, members, len(sizes))

    def by_user(values: np.ndarray) -> np.ndarray:
        return np.bincount(user, weights=values, minlength=members.size)

    failures, exposure = by_user(to_failure <= run_time), by_user(np.minimum(to_failure, run_time))
    total, squares = by_user(run_time), clusters.sum(by_user(run_time**2))
    failed, at_risk, mean = clusters.sum(failures), clusters.sum(exposure), clusters.sum(total) / n
    by_trace = np.sort(run_time.reshape(len(sizes), -1), axis=1)
    middle = by_trace[:, (n[0] - 1) // 2]
    ranks = clusters.around_the_middle(by_user(run_time <= middle[place[user]]), members, CONFIDENCE)
    # The ends of a median's interval hold the truth where the share of the jobs up to it lies between their ranks.
    upto = (by_trace <= true.median).mean(axis=1)
    values = [median_interval(int(n[0]), row.__getitem__) for row in by_trace]
    away = Z_95 * np.sqrt((squares / n - mean**2) / n)
    found = {
        "share": (true.share, wilson_interval(failed, n), clusters.proportion(failures, members, CONFIDENCE)),
        "mean time to failure": (
            true.mttf,
            [at_risk / limit for limit in poisson_limits(failed, CONFIDENCE)[::-1]],
            clusters.ratio(exposure, failures, CONFIDENCE, both=True),
        ),
        "mean": (true.mean, (mean - away, mean + away), clusters.ratio(total, members, CONFIDENCE)),
    }
    held = {name: (_between(of, *exact), _between(of, *robust[:2])) for name, (of, exact, robust) in found.items()}
    held["median"] = _between(true.median, *np.transpose(values)), _between(upto, *ranks[:2])
    limits = {name: robust for name, (_, _, robust) in found.items()} | {"median": ranks}
    return {name: [*held[name], np.isfinite(limits[name]).all(axis=0)] for name in held}


def _between(value: np.ndarray | float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return (low <= value) & (value <= high)


def lives_of(world: World, rng: np.random.Generator) -> pl.DataFrame:
    """One trace as lives, and as jobs: with a GPU type and a month that each user prefers, which change nothing."""
    ((_, user, run_time, to_failure),) = traces(world, rng, 1)
    return with_clusters(
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
    """For each job one of the choices: in four of five that of its user, else any."""
    own, any_one = rng.choice(choices, user.max() + 1)[user], rng.choice(choices, user.size)
    return np.where(rng.random(user.size) < 0.8, own, any_one)


def _logrank(lives: pl.DataFrame) -> pl.DataFrame:
    test = import_module("ttf.analyses.factors.estimate_hazards.logrank").logrank
    return test(lives, "failure", ["gpu_type"]).filter(kind="overall")


def _cox(lives: pl.DataFrame) -> pl.DataFrame:
    test = import_module("ttf.analyses.factors.estimate_hazards.hazard_ratios").hazard_ratios
    return test(lives, "failure", ["gpu_type"]).drop_nulls("p_value").sort("level").head(1)


def _drift(lives: pl.DataFrame) -> pl.DataFrame:
    room = import_module("ttf.analyses.quality.measure_drift.compute")
    jobs = lives.rename({"event": "outcome", "duration_s": "runtime_s"})
    blank = dict.fromkeys(set(room.NUMBERS) - set(jobs.columns), pl.lit(None, dtype=pl.Int64))
    jobs = jobs.with_columns(**blank)
    table = room.drift_table(room.by_window(jobs, "month"))
    return table.filter(column="outcome", statistic="failure_share").head(1)


# The tests of nulls by name: of lives, the row of their table with its p_value and p_clustered.
NULLS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "log-rank, three GPU types": _logrank,
    "Cox, a GPU type's ratio": _cox,
    "drift of the failure share": _drift,
}


def rejections(world: World, name: str, repetitions: int, seed: int = SEED) -> tuple[float, float]:
    """How often a true null is rejected at .05: by the p-value that supposes independence, and by the clustered one."""
    rng = np.random.default_rng(seed)
    rows = pl.concat([NULLS[name](lives_of(world, rng)) for _ in range(repetitions)])
    exact, robust = ((rows[p] < SIGNIFICANCE).mean() for p in ("p_value", "p_clustered"))
    return exact, robust


def shape_within(world: World, shape: float, repetitions: int, seed: int = SEED) -> dict[str, float]:
    """Of the Weibull shape within users: its mean, how often its interval holds the truth, and what is said of it."""
    rng, rows, alike = np.random.default_rng(seed), [], []
    failed = {"failure": pl.col("event") == "failure"}
    for _ in range(repetitions):
        ((_, user, run_time, to_failure),) = traces(world, rng, 1)
        # The hazard of each user is a power of age.
        to_failure = (to_failure * world.rate) ** (1 / shape) / world.rate
        lives = pl.DataFrame({"user": user, "duration_s": np.minimum(run_time, to_failure).astype(np.int64)})
        lives = with_clusters(lives.with_columns(event=np.where(to_failure <= run_time, "failure", "success")))
        rows.append(shapes(lives, failed, ["all"])["failure", "all", "all"])
        (times,) = (times for _, times in times_by_stratum(lives, "failure", "all"))
        alike.append(weibull(Sample.of(times)))
    low, high, within = (np.array([row[f"shape_within{end}"] for row in rows]) for end in ("_ci_low", "_ci_high", ""))
    pooled, error = (np.array([fit[name] for fit in alike]) for name in ("shape", "shape_se"))
    return {
        "pooled": pooled.mean(),
        "pooled falls": (pooled * np.exp(Z_95 * error / pooled) < 1).mean(),
        "within": within.mean(),
        "covered": _between(shape, low, high).mean(),
        "falls": (high < FALLING).mean(),
    }


@dataclass(frozen=True)
class Predicted:
    """Jobs with predictions. probability: of failure, other: by a worse model; hours: until the job failed (observed)
    or was last seen, predicted: the hours until it fails."""

    user: np.ndarray
    failed: np.ndarray
    probability: np.ndarray
    other: np.ndarray
    hours: np.ndarray
    observed: np.ndarray
    predicted: np.ndarray

    @classmethod
    def of(cls, sizes: np.ndarray, rng: np.random.Generator) -> "Predicted":
        """sizes: jobs by user. Half of what is known of a job, and all of what is not, is its user's; log SD 1."""
        user = np.repeat(np.arange(sizes.size), sizes)

        def of_user() -> np.ndarray:
            return rng.normal(size=sizes.size)[user]

        def of_job() -> np.ndarray:
            return rng.normal(size=user.size)

        known = (of_user() + of_job()) / np.sqrt(2)
        failed = rng.random(user.size) < expit(-2 + known + of_user())
        log_hours = 1 + (of_user() + of_job()) / np.sqrt(2)
        to_failure, to_end = log_hours + 0.7 * of_user() + of_job(), 2 + 1.5 * of_job()
        return cls(
            user,
            failed,
            expit(-2 + known),
            expit(-2 + known + 0.8 * of_job()),
            np.exp(np.minimum(to_failure, to_end)),
            to_failure <= to_end,
            np.exp(log_hours),
        )

    def scores(self, cluster: np.ndarray) -> dict[str, predictions.Estimate]:
        of_failure, seen = (self.failed, self.probability), self.observed
        both = (self.failed, self.probability, self.other, cluster, "user")
        of_hours = (self.predicted[seen], self.hours[seen], cluster[seen], "user")
        return {
            "average precision": predictions.average_precision(*of_failure, cluster, "user"),
            "its difference": predictions.difference("average_precision", *both),
            "ROC AUC": predictions.roc_auc(*of_failure, cluster, "user"),
            "log loss": predictions.log_loss(*of_failure, cluster, "user"),
            "slope": predictions.calibration(*of_failure, cluster, "user").slope,
            "concordance": predictions.concordance(self.hours, seen, self.predicted, cluster, "user"),
            "factor off": predictions.median_factor_off(*of_hours),
            "R²": predictions.r2_log(*of_hours),
        }


def coverage_of_scores(world: World, repetitions: int, seed: int = SEED) -> Covered:
    """How often the 95 % intervals of scores of predictions hold those of very many users.

    Of the world its users and jobs alone; of the exact intervals each job is by itself.
    """
    rng, held = np.random.default_rng(seed), {}
    # Of users of one size, who are as those of any: sizes and factors have nothing to do with one another.
    many = Predicted.of(np.full(10_000, 100), np.random.default_rng(SEED))
    true = {name: found.estimate for name, found in many.scores(many.user).items()}
    for _ in range(repetitions):
        drawn = Predicted.of(world.sizes(rng, 1)[0], rng)
        found = [drawn.scores(cluster) for cluster in (np.arange(drawn.user.size), drawn.user)]
        for name, value in true.items():
            exact, robust = (of[name] for of in found)
            held.setdefault(name, []).append([_holds(exact, value), _holds(robust, value), robust.low is not None])
    return {name: _counted(np.transpose(each)) for name, each in held.items()}


def _holds(found: predictions.Estimate, value: float) -> bool:
    return found.low is not None and found.low <= value <= found.high


def lemons_found(
    nodes: int, per_node: float, cv: float, bad: int, repetitions: int, seed: int = SEED
) -> tuple[float, float]:
    """How often any ordinary node is called significant at 5 %, and the share of the bad ones that are.

    Nodes of unequal exposure have so many failures on average, at gamma rates of this coefficient of variation; the bad
    ones fail 18 times as often.
    """
    rng, false, right = np.random.default_rng(seed), 0, 0
    for _ in range(repetitions):
        exposure = rng.integers(20, 28, nodes) * 86_400
        rates = rng.gamma(cv**-2, cv**2, nodes) if cv else np.ones(nodes)
        rates[:bad] *= 18
        counted = rng.poisson(per_node * rates * exposure / exposure.mean())
        table = pl.DataFrame({"fleet": ["one"] * nodes, "counted": counted, "exposure_s": exposure})
        found = with_verdict(compared_by_exposure(table), SIGNIFICANCE)[0]["lemon"].fill_null(False).to_numpy()
        false, right = false + bool(found[bad:].any()), right + int(found[:bad].sum())
    return false / repetitions, right / repetitions / max(bad, 1)


def coverage_of_ettr(sigma: float, repetitions: int, waits: int = 47, seed: int = SEED) -> tuple[float, float, float]:
    """Of the 90 % interval of the ETTR of a 1,024-GPU run: how often the one at the ends of the failure rate holds the
    truth, how often the one that has the waits' error too does where there is one, and how often there is.

    Some 60 failures give the rate; so many waits of 20 users, lognormal with this log SD and a median of 4 h, the mean.
    """
    rng, per_day, mean_s = np.random.default_rng(seed), 6.5e-3, 4 * HOUR * np.exp(sigma**2 / 2)
    node_days, nodes, found = 60 / per_day, 128, []
    true = float(ettr_renewal(Habits(HOUR, 300, 300, mean_s, 14 * DAY_S).plan(nodes * per_day / DAY_S)))
    for _ in range(repetitions):
        rows = pl.DataFrame({"start_s": (4 * HOUR * np.exp(sigma * rng.normal(size=waits))).astype(np.int64)})
        rows = rows.with_columns(
            unit_id=pl.int_range(pl.len()).cast(pl.String),
            user=pl.Series(rng.integers(0, 20, waits)),
            life_id=1,
            submit_s=0,
            event=pl.lit(None, pl.String),
            gpu_milli=1,
        )
        queue = queue_of(with_levels(rows, {"user": ["user"]}), None)
        failures = int(rng.poisson(60))
        ends = (DAY_S / end_s for end_s in garwood_interval(node_days * DAY_S, failures, 0.9)[::-1])
        rate = NodeRate(failures / node_days, *ends, 8, None, nodes, "")
        habit = Habits(HOUR, 300, 300, queue["value"], 14 * DAY_S)
        table, _ = plan_tables(rate, [habit], [8 * nodes], 0, 1, queue)
        at = {row["rate"]: row for row in table.iter_rows(named=True)}
        low, high = (at["estimate"][f"ettr_ci_{end}"] for end in ("low", "high"))
        known = _between(true, *(at[end]["ettr_renewal"] for end in ("high", "low")))
        found.append((known, low is not None and low <= true <= high, low is not None))
    return _counted(np.transpose(found).astype(float))


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
# Of `WORLDS`, those in which tests of true nulls are counted, and those in which the rates of users fall with age.
TESTED = ("100 users", "20 users", "100 users who do not differ")
# Those in which scores of predictions are made, of which the rates and run times do not matter; one by one, so that
# there are fewer.
FEWER = 4
SCORED = ("100 users", "20 users", "100 users, sizes lognormal (log SD 1.5)")
SHAPES = (0.6, 0.85, 1.0)
FLEETS = (50, 200)


def as_markdown(repetitions: int) -> str:
    intervals = _table(["", *ESTIMATES, "given"], _intervals(repetitions))
    nulls = _table(["", *NULLS], _nulls(repetitions))
    scores = _table(["", *SCORES, "given"], _scores(repetitions))
    of_shapes = ["", "true shape", "over all", "falls", "within users", "holds the truth", "falls"]
    return f"""# Do the intervals hold?

Made by `make coverage` ([coverage.py](coverage.py)); a smaller form of it is a test. Each number is of {repetitions:,}
simulated traces, so that one of 0.95 has a standard error of {(0.95 * 0.05 / repetitions) ** 0.5:.3f}. A trace is 5,000
jobs of 100 users, or 2,000 of 20. Users' sizes follow Zipf's law (exponent 0.9), which leaves {_effective(100):.1f} and
{_effective(20):.1f} effective users; their failure rates, and their run times, differ by lognormal factors of log SD 1;
within a user run times are lognormal (log SD 1.5) and the failure rate is constant, so that {truth(BASE).share:.0%} of
the jobs fail. What else is written beside a world differs from that.

## 95% CIs

How often they hold the truth of the population from which the users are drawn: **the clustered interval**, and in
brackets the one that supposes that jobs are independent. Below 4 effective clusters there is no clustered interval; the
last column is the share of the traces that have one.

{intervals}

## Tests of true nulls at 0.05

How often they reject: by **the clustered p-value**, and in brackets by the one that supposes independence. GPU types
change nothing, and nothing drifts; but each user has a GPU type and a month that most of their jobs are of.

{nulls}

## Scores of predictions

The same of how good predictions of failure are, and of hours until it, by models that know nothing of a user but what
they request, of which half is the user's: in brackets each job is taken for a cluster by itself. The difference is that
to a worse model on the same jobs. Each number is of {repetitions // FEWER:,} traces.

{scores}

## A decreasing hazard, or a mixture

The Weibull shape of users who have one shape and whose rates differ: below 1 the hazard decreases. Over all, as if
users were alike: its mean, and how often its whole interval lies below 1. Within users (gamma frailty, though the rates
are lognormal): its mean, how often its interval holds the truth, and how often the rate is said to fall, which takes an
upper end below {FALLING}.

{_table(of_shapes, _shapes(repetitions))}

## Outages

The same of fleets of 400 nodes that are watched for a year, each up for 240 days on average and down for 5.5: up times
are exponential, repairs lognormal, nodes that differ do so by factors of log SD 0.9 (gamma: variance 1). In brackets
what supposes independence: Garwood's interval, that of the mean of the outages that ended, that of exponential times.
A mean of repairs of log SD 2 rests on a few of them: the study gives a restricted mean beside it.

{_table(["", *coverage_outages.ESTIMATES, "given"], _outages(repetitions))}

## Weeks that differ

The same of {coverage_weeks.STEADY.jobs:,} jobs of 100 users, and of {coverage_weeks.STEADY.nodes} nodes, in weeks
that have a factor in common: lognormal, and where it says AR as much like that of the week before. In brackets the
interval by user, or by node, alone; then, of each of the four, how many times as wide the one by both is. Where weeks
are much alike it still holds the truth less often than 95%: only many such weeks tell how others would differ. Nor
does a fleet without any of a few nodes that fail far more often show that there are such. Each number is of
{repetitions // FEWER:,} traces.

{_table(["", *coverage_weeks.ESTIMATES, "times as wide"], _weeks(repetitions))}

{_faults(repetitions // FEWER)}
## ETTR

The 90% CI of the ETTR of a 1,024-GPU run, at a failure rate from some 60 failures and a mean wait from 47
restarts of 20 users: how often it holds the truth, and in brackets the one that takes the mean wait for known. Where
one wait makes nearly all of the spread there is none.

{_table(["waits", "ETTR", "given"], _ettr(repetitions))}

{_changes(repetitions // FEWER)}
{_nodes(repetitions // FEWER)}"""


GROWTH_HEADS = ["", "β", "given", "no trend rejected"]
BURST_HEADS = ["", *(f"within {name}" for name in coverage_faults.BURST_WINDOWS)]
SPARE_HEADS = ["", "90% of the time", "given", "95% of the time", "given"]
FREE_HEADS = ["", "a day", "a week", "a month"]
CVS = (0, 0.5, 1)
LEMON_HEADS = ["nodes", "failures a node", *(f"{what}, CV {cv}" for what in ("any", "found") for cv in CVS)]
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
        found = coverage(world, repetitions)
        given = min(found[estimate][2] for estimate in ESTIMATES)
        yield [name, *(_both(robust, exact) for exact, robust, _ in map(found.get, ESTIMATES)), f"{given:.2f}"]


def _scores(repetitions: int) -> Iterator[list[str]]:
    for name in SCORED:
        found = coverage_of_scores(WORLDS[name], repetitions // FEWER)
        given = min(found[score][2] for score in SCORES)
        yield [name, *(_both(robust, exact) for exact, robust, _ in map(found.get, SCORES)), f"{given:.2f}"]


def _nulls(repetitions: int) -> Iterator[list[str]]:
    for world in TESTED:
        found = [rejections(WORLDS[world], name, repetitions) for name in NULLS]
        yield [world, *(_both(robust, exact) for exact, robust in found)]


def _shapes(repetitions: int) -> Iterator[list[str]]:
    for name in ("100 users", "20 users"):
        for shape in SHAPES:
            found = shape_within(WORLDS[name], shape, repetitions)
            yield [name, f"{shape:g}", *(f"{number:.3f}" for number in found.values())]


def _lemons(repetitions: int) -> Iterator[list[str]]:
    for nodes in FLEETS:
        for per_node in (0.35, 3):
            found = [lemons_found(nodes, per_node, cv, 0, repetitions)[0] for cv in CVS]
            power = [lemons_found(nodes, per_node, cv, 3, repetitions)[1] for cv in CVS]
            cells = [f"**{false:.3f}**" for false in found] + [f"{share:.2f}" for share in power]
            yield [f"{nodes}", f"{per_node:g}", *cells]


def _outages(repetitions: int) -> Iterator[list[str]]:
    for name, found in coverage_outages.rows(repetitions, SEED):
        yield [name, *(_both(robust, exact) for exact, robust, _ in found), f"{min(given for *_, given in found):.2f}"]


def _weeks(repetitions: int) -> Iterator[list[str]]:
    for name, found in coverage_weeks.rows(repetitions // FEWER, SEED):
        widths = ", ".join(f"{width:.2f}" for *_, width in found.values())
        yield [name, *(_both(both, alone) for alone, both, *_ in found.values()), widths]


def _ettr(repetitions: int) -> Iterator[list[str]]:
    for sigma in (1, 1.5, 2):
        exact, robust, given = coverage_of_ettr(sigma, repetitions // FEWER)
        yield [f"log SD {sigma:g}", _both(robust, exact), f"{given:.2f}"]


def _nodes(repetitions: int) -> str:
    return f"""## Nodes that fail more

How often any node is called significant at a false-discovery rate of 0.05 though none is bad, where nodes are alike or
their rates differ (gamma, coefficient of variation CV); and which part of three bad nodes is found, which fail 18 times
as often as others. That ordinary nodes are not called bad has a price: of few failures, or where nodes differ much, not
all bad ones are told from them. Nodes are supposed to differ with a CV of {USUAL_CV} where failures do not say by how
much. The test of traces that do not name causes takes nodes for alike; it is simulated in `tests/unit/test_lemons.py`.
Each number is of {repetitions:,} traces.

{_table(LEMON_HEADS, _lemons(repetitions))}
"""


def _changes(repetitions: int) -> str:
    return f"""## Changes and forecasts

How often what changed with the last week is wrong, where nothing changes, of the failure share and the failure rate of
{coverage_changes.USERS} users whose weeks differ (Holm); and how often a rate is found that did change by the ratio
called detectable. With fewer than four weeks before there is no verdict. Each number is of {repetitions:,} traces.

{_table(CHANGED_HEADS, coverage_changes.rows_of_changes(repetitions, SEED))}

How often suspect nodes are said to have changed with the last of some weeks, where three of 200 nodes always fail 18
times as often as the others:

{_table(SUSPECT_HEADS, coverage_changes.rows_of_suspects(repetitions, SEED))}

How often the next week is within its 90% prediction interval:

{_table(FORECAST_HEADS, coverage_changes.rows_of_forecasts(repetitions, SEED))}
"""


def _faults(repetitions: int) -> str:
    return f"""## Faults over time

The growth β of faults of a fleet over a year, at a constant rate unless it says otherwise: how often its interval by
blocks of time holds the truth, of the fleets that have one, and how often the test of trend rejects a constant rate.
In brackets the exact interval of independent faults, and Lewis and Robinson's test. With a β below 1 most of what
tells of it lies in the first weeks, so that there may be no interval. Each number is of {repetitions:,} fleets.

{_table(GROWTH_HEADS, coverage_faults.rows_of_growth(repetitions, SEED))}

How often 400 nodes that fail 500 times in 26 weeks, none because of another, are said to fail in bursts of the fleet:
by all of exchanged, shifted and jittered times, and in brackets by shifted histories alone.

{_table(BURST_HEADS, coverage_faults.rows_of_bursts(repetitions // 2, SEED))}

How often the interval of the number of nodes that are down at most, for 90 and 95% of the time, holds that of the
binomial, of the fleets that have one, and how many have: 400 nodes up for 240 days on average and down for 5.5. Where
next to none has one, those that do are fleets whose outages happened to be short.

{_table(SPARE_HEADS, coverage_faults.rows_of_spares(repetitions, SEED))}

How often the interval of the share of nodes that go without an outage for so long from a random moment holds that of
very many such fleets: 100 nodes that fail every 60 days, by factors of log SD 0.9, over 26 weeks.

{_table(FREE_HEADS, coverage_faults.rows_of_free(repetitions // 2, SEED))}
"""


def _both(robust: float, exact: float) -> str:
    return f"**{robust:.3f}** ({exact:.3f})"


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(as_markdown(int(sys.argv[2]) if len(sys.argv) > 2 else 2_000), encoding="utf-8")
