"""Users, what is sent again, and machines of the samples are as unlike as they were made, and the totals stay."""

import numpy as np
import polars as pl
import pytest
from cluster_effects import alike, design_effect, log_sd
from samples.pai2020 import sample_published as pai
from samples.pai2020.sample_plan import plan_sample
from samples.pai2020.sample_tables import machines_of, make_machines, place_instances
from samples.philly import sample as philly
from samples.sacct import sample as sacct

from samples import draws

SEEDS = range(6)


def of_pai(seed: int, tasks: int = 20_000) -> pl.DataFrame:
    """The jobs that asked for a GPU and ended: user, group, whether they failed, log odds known of them, run time."""
    sample = plan_sample(tasks, seed)
    first = np.flatnonzero(np.diff(sample.tasks.job, prepend=-1))
    jobs = pl.DataFrame(
        {
            "user": sample.jobs.user,
            "group": sample.jobs.group,
            "failed": sample.jobs.status == pai.FAILED,
            "ended": np.isin(sample.jobs.status, [pai.FAILED, pai.TERMINATED]) & (sample.tasks.plan_gpu[first] > 0),
            "gpu_type": sample.tasks.gpu_type[first],
            "run_s": sample.tasks.run_s[first],
        }
    )
    share = pl.col("failed").mean().over("gpu_type")
    return jobs.filter("ended").with_columns(known=(share / (1 - share)).log())


def of_philly(seed: int, jobs: int = 3_000) -> pl.DataFrame:
    plan, machines = philly.plan(jobs, seed), philly.machine_gpus(jobs)
    plan = philly.failed_there(plan, philly.schedule(plan, machines), len(machines), seed)
    per_mille = np.array(philly.STATUS_BY_BUCKET)[plan.bucket, philly.FAILED]
    return pl.DataFrame(
        {
            "user": plan.user,
            "group": plan.campaign,
            "failed": plan.status == philly.FAILED,
            "known": np.log(per_mille / (1_000 - per_mille)),
            "kind": plan.bucket,
            "run_s": [sum(durations) for durations in plan.durations_s],
        }
    )


def of_sacct(seed: int, jobs: int = 4_000) -> pl.DataFrame:
    plan = sacct.plan(jobs, seed)
    return pl.DataFrame(
        {
            "user": plan.user,
            "group": plan.campaign,
            "failed": np.isin(plan.jobs.state, sacct.FAILURES),
            "known": 0.0,
            "kind": np.minimum(plan.jobs.gpus, sacct.LARGE_GPUS) // sacct.NODE_GPUS,
            "run_s": plan.jobs.work_s,
        }
    )


SAMPLES = {"pai2020": (pai, of_pai), "philly": (philly, of_philly), "sacct": (sacct, of_sacct)}


@pytest.fixture(scope="module", params=SAMPLES)
def made(request):
    """The module of a sample, and its jobs for each of some seeds."""
    module, jobs_of = SAMPLES[request.param]
    return module, [jobs_of(seed) for seed in SEEDS]


# ---- what went in comes out ----


def test_users_are_as_unlike_as_they_were_made(made):
    """Each sample has but 50 to 450 users; the mean over the seeds is known to some 0.05.

    What users' groups and machines add is averaged over, which takes 4 % off the log odds.
    """
    module, traces = made
    found = [log_sd(jobs["failed"], jobs["user"], jobs["known"]) for jobs in traces]
    assert np.mean(found) == pytest.approx(module.USER_LOG_SD, abs=0.15)
    assert min(found) > 0.7


def test_what_is_sent_again_fails_alike_beyond_its_user(made):
    """Users and groups have log odds of their own: the variance between groups is the sum of the two.

    The groups of a user share their user, so that one trace tells less of it than its number of groups says.
    """
    module, traces = made
    found = [log_sd(jobs["failed"], jobs["group"], jobs["known"]) for jobs in traces[:4]]
    assert np.mean(found) == pytest.approx(np.hypot(module.USER_LOG_SD, module.GROUP_LOG_SD), abs=0.15)


def test_the_share_of_failures_is_much_less_sure_than_its_binomial_interval_says(made):
    _, traces = made
    for jobs in traces:
        assert design_effect(jobs["failed"], jobs["user"]) > 4
        assert design_effect(jobs["failed"], jobs["group"]) > 1.25


def test_run_times_of_a_user_and_of_a_group_are_alike():
    jobs = pl.concat([of_pai(seed).filter(~pl.col("failed")).with_columns(seed=pl.lit(seed)) for seed in SEEDS])
    by_type = jobs.filter(pl.col("gpu_type") == pai.MISC)
    user, group = (by_type.select(code=pl.struct("seed", name).rank("dense"))["code"] for name in ("user", "group"))
    assert alike(by_type["run_s"], group) == pytest.approx(pai.RUN_BY_USER + pai.RUN_BY_GROUP, abs=0.08)
    assert pai.RUN_BY_USER - 0.05 < alike(by_type["run_s"], user) < alike(by_type["run_s"], group) - 0.05


@pytest.mark.parametrize("name", ["philly", "sacct"])
def test_a_group_runs_alike_where_the_log_does_not_name_it(name):
    _, jobs_of = SAMPLES[name]
    # One kind of size: other sizes have other run times. Failures come early in the sample of Slurm.
    jobs = pl.concat([jobs_of(seed).with_columns(seed=pl.lit(seed)) for seed in SEEDS])
    jobs = jobs.filter(~pl.col("failed") & (pl.col("kind") == 0) & (pl.col("run_s") > 0))
    group = jobs.select(code=pl.struct("seed", "group").rank("dense"))["code"]
    module = SAMPLES[name][0]
    assert alike(jobs["run_s"], group) == pytest.approx(module.RUN_BY_USER + module.RUN_BY_GROUP, abs=0.1)


def test_machines_of_the_pai_sample_are_as_unlike_as_they_were_made():
    """Within a rack, where the users are the same; those and groups are averaged over, which takes 15 % off."""
    found = []
    for seed in SEEDS:
        sample, machines = plan_sample(20_000, seed), make_machines(20_000, seed)
        placed = place_instances(np.random.default_rng(seed), sample, slice(0, 20_000), 0, machines)
        tasks = sample.tasks
        on = tasks.gpu_type[placed.task]
        at = placed.machine - machines.first[on]
        racks = -(-machines.count[on] // pai.RACK_MACHINES)
        rows = pl.DataFrame(
            {
                "machine": placed.machine,
                "rack": 1_000 * on + (racks * at + racks - 1) // machines.count[on],
                "failed": tasks.status[placed.task] == pai.FAILED,
                "kept": np.isin(tasks.status[placed.task], [pai.FAILED, pai.TERMINATED])
                & (on != pai.NO_TYPE)
                & (tasks.instances[placed.task] == 1),
            }
        )
        share = pl.col("failed").mean().over("rack")
        rows = rows.filter("kept").with_columns(known=(share / (1 - share)).log())
        found.append(log_sd(rows["failed"], rows["machine"], rows["known"]))
    assert np.mean(found) == pytest.approx(0.9 * pai.MACHINE_LOG_SD, abs=0.08)


def test_machines_of_the_philly_sample_are_as_unlike_as_they_were_made():
    """Given what else is known of a job: its user's odds, and how many fail with its size and number of attempts."""
    found = []
    for seed in SEEDS[:3]:
        plan, machines = philly.plan(12_000, seed), philly.machine_gpus(12_000)
        attempts = philly.schedule(plan, machines)
        failed = philly.failed_there(plan, attempts, len(machines), seed).status == philly.FAILED
        last = {attempt.job: next(iter(attempt.held)) for attempt in attempts if len(attempt.held) == 1}
        jobs = list(last)
        rows = pl.DataFrame(
            {
                "machine": last.values(),
                "failed": failed[jobs],
                "odds": plan.odds[jobs],
                "bucket": plan.bucket[jobs],
                "tries": [len(plan.durations_s[job]) for job in jobs],
            }
        )
        share = pl.col("failed").mean().over("bucket", "tries")
        rows = rows.with_columns(known=(pl.col("odds") * share / (1 - share)).log().round(1)).filter(
            pl.col("known").is_finite()
        )
        found.append(log_sd(rows["failed"], rows["machine"], rows["known"]))
    assert np.mean(found) == pytest.approx(philly.MACHINE_LOG_SD, abs=0.1)


def test_ordinary_nodes_of_the_slurm_sample_differ_mildly():
    hazard = sacct.Hazard()
    ordinary = np.log(np.delete(hazard.per_node_hour(240), hazard.lemons(240)))
    assert ordinary.std() == pytest.approx(hazard.node_log_sd, abs=0.02)
    alone = sacct.Hazard(node_log_sd=0, lemons_per_64_nodes=0).per_node_hour(240)
    assert alone.max() == pytest.approx(alone.min())


def test_gpu_types_of_the_pai_sample_have_their_part_of_the_failures():
    jobs = of_pai(0, 100_000)
    share = jobs.filter(pl.col("gpu_type") < pai.NO_TYPE).group_by("gpu_type").agg(pl.col("failed").mean())
    share = share.sort("gpu_type")
    asked = np.array([pai.FAILURES_BY_TYPE[name] for name in pai.GPU_TYPES])
    found = share["failed"].to_numpy() / share["failed"][0]
    assert found == pytest.approx(asked / asked[0], rel=0.15)


# ---- what does not change ----


def test_the_totals_are_those_of_independent_jobs(made):
    """The totals are given: users and groups only say who makes them up."""
    _, traces = made
    shares = [jobs["failed"].mean() for jobs in traces]
    assert max(shares) - min(shares) < 0.005


def test_jobs_of_a_day_land_together():
    """Two tasks of a user and day share a rack; two of a user share one no more often than by chance."""
    sample, machines = plan_sample(20_000, 3), make_machines(20_000, 3)
    at = machines_of(np.random.default_rng(1), sample, slice(0, 20_000), machines)
    jobs = pl.DataFrame(
        {
            "user": sample.jobs.user[sample.tasks.job],
            "day": sample.jobs.submit_s[sample.tasks.job] // 86_400,
            "machine": at,
            "on": sample.tasks.gpu_type,
        }
    ).filter(pl.col("on") == pai.MISC)
    spread = pl.col("machine").max() - pl.col("machine").min()
    assert jobs.group_by("user", "day").agg(spread)["machine"].max() < pai.RACK_MACHINES
    assert jobs.group_by("user").agg(spread)["machine"].max() > machines.count[pai.MISC] - pai.RACK_MACHINES


# ---- the draws ----


def test_a_given_number_fails_by_odds():
    """Against the logistic model: of two kinds, one with four times the odds, the odds ratio is 4."""
    rng = np.random.default_rng(1)
    odds = np.repeat([1.0, 4.0], 20_000)
    fails = draws.which_fail(rng, 12_000, odds)
    assert fails.sum() == 12_000
    low, high = fails[:20_000].mean(), fails[20_000:].mean()
    assert high / (1 - high) / (low / (1 - low)) == pytest.approx(4, rel=0.06)


def test_factors_are_lognormal_with_the_given_deviation():
    logs = np.log(draws.lognormal(np.random.default_rng(1), 400, 1.0))
    assert logs.std() == pytest.approx(1, abs=0.01)
    assert np.median(logs) == pytest.approx(0, abs=0.01)
    assert (draws.lognormal(np.random.default_rng(1), 5, 0.0) == 1).all()


def test_scores_are_alike_as_asked():
    rng = np.random.default_rng(1)
    user, group = np.arange(40_000) // 20, np.arange(40_000) // 4
    scores = draws.alike(rng, (user, 0.1), (group, 0.2))
    assert scores.var() == pytest.approx(1, abs=0.03)
    assert alike(scores, group) == pytest.approx(0.3, abs=0.02)
    # Of the 190 pairs of a user 30 are of one group.
    assert alike(scores, user) == pytest.approx(0.1 + 0.2 * 30 / 190, abs=0.02)


def test_groups_are_of_one_request_and_side_by_side():
    request = np.array([1, 2, 1, 1, 2, 1, 1])
    group = draws.sent_again(
        np.random.default_rng(1), request, np.arange(7), draws.QuantileFunction({0: 3, 1: 3}, log=False)
    )
    assert group.tolist() == [0, 2, 0, 0, 3, 1, 1]
