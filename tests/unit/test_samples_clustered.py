"""Users, resubmissions and machines of the samples differ as configured; the totals do not change."""

import numpy as np
import polars as pl
import pytest
from cluster_effects import intraclass_correlation, log_sd
from samples.pai2020 import sample_published as pai
from samples.pai2020.sample_plan import plan_sample
from samples.philly import sample as philly
from samples.sacct import sample as sacct

from samples import draws

SEEDS = range(4)


def draw_pai_jobs(seed: int, tasks: int = 12_000) -> pl.DataFrame:
    """Draw the ended jobs that requested a GPU: user, group, failed, expected log odds and run time."""
    sample = plan_sample(tasks, seed)
    start = np.flatnonzero(np.diff(sample.tasks.job, prepend=-1))
    jobs = pl.DataFrame(
        {
            "user": sample.jobs.user,
            "group": sample.jobs.group,
            "failed": sample.jobs.status == pai.FAILED,
            "ended": np.isin(sample.jobs.status, [pai.FAILED, pai.TERMINATED]) & (sample.tasks.plan_gpu[start] > 0),
            "gpu_type": sample.tasks.gpu_type[start],
            "run_s": sample.tasks.run_s[start],
        }
    )
    share = pl.col("failed").mean().over("gpu_type")
    # A GPU type without a failed or a successful job says nothing about its users.
    jobs = jobs.filter("ended").filter(share.is_between(0, 1, closed="none"))
    return jobs.with_columns(log_odds=(share / (1 - share)).log())


def draw_philly_jobs(seed: int, jobs: int = 3_000) -> pl.DataFrame:
    plan, machines = philly.plan(jobs, seed), philly.machine_gpus(jobs)
    plan = philly.redraw_statuses(plan, philly.schedule(plan, machines), len(machines), seed)
    per_mille = np.array(philly.STATUS_BY_BUCKET)[plan.bucket, philly.FAILED]
    return pl.DataFrame(
        {
            "user": plan.user,
            "group": plan.campaign,
            "failed": plan.status == philly.FAILED,
            "log_odds": np.log(per_mille / (1_000 - per_mille)),
            "kind": plan.bucket,
            "run_s": [sum(durations) for durations in plan.durations_s],
        }
    )


def draw_sacct_jobs(seed: int, jobs: int = 4_000) -> pl.DataFrame:
    plan = sacct.plan(jobs, seed)
    return pl.DataFrame(
        {
            "user": plan.user,
            "group": plan.campaign,
            "failed": np.isin(plan.jobs.state, sacct.FAILURES),
            "log_odds": 0.0,
            "kind": np.minimum(plan.jobs.gpus, sacct.LARGE_GPUS) // sacct.NODE_GPUS,
            "run_s": plan.jobs.work_s,
        }
    )


SAMPLES = {"pai2020": (pai, draw_pai_jobs), "philly": (philly, draw_philly_jobs), "sacct": (sacct, draw_sacct_jobs)}


@pytest.fixture(scope="module", params=SAMPLES)
def seeded_jobs(request):
    """The module of a sample, and its jobs for each seed."""
    module, draw_jobs = SAMPLES[request.param]
    return module, [draw_jobs(seed) for seed in SEEDS]


# ---- the configured spreads come out ----


def test_users_differ_as_configured(seeded_jobs):
    """A sample has only 50 to 450 users; the mean over the seeds has an error of about 0.05.

    The users' groups and machines are averaged over, which shrinks the log odds by 4 %.
    """
    module, traces = seeded_jobs
    log_sds = [log_sd(jobs["failed"], jobs["user"], jobs["log_odds"]) for jobs in traces]
    assert np.mean(log_sds) == pytest.approx(module.USER_LOG_SD, abs=0.15)
    assert min(log_sds) > 0.7


def test_resubmissions_are_correlated_beyond_their_user(seeded_jobs):
    """Users and groups have log odds of their own: the variance between groups is the sum of the two.

    The groups of a user are correlated, so one trace is less informative than its number of groups suggests.
    """
    module, traces = seeded_jobs
    log_sds = [log_sd(jobs["failed"], jobs["group"], jobs["log_odds"]) for jobs in traces]
    assert np.mean(log_sds) == pytest.approx(np.hypot(module.USER_LOG_SD, module.GROUP_LOG_SD), abs=0.15)


def test_run_times_of_a_user_and_of_a_group_are_correlated():
    jobs = pl.concat([draw_pai_jobs(seed).filter(~pl.col("failed")).with_columns(seed=pl.lit(seed)) for seed in SEEDS])
    misc_jobs = jobs.filter(pl.col("gpu_type") == pai.MISC)
    user, group = (misc_jobs.select(code=pl.struct("seed", name).rank("dense"))["code"] for name in ("user", "group"))
    assert intraclass_correlation(misc_jobs["run_s"], group) == pytest.approx(
        pai.RUN_BY_USER + pai.RUN_BY_GROUP, abs=0.08
    )
    assert (
        pai.RUN_BY_USER - 0.05
        < intraclass_correlation(misc_jobs["run_s"], user)
        < intraclass_correlation(misc_jobs["run_s"], group) - 0.05
    )


def test_ordinary_nodes_of_the_slurm_sample_differ_mildly():
    hazard = sacct.Hazard()
    ordinary = np.log(np.delete(hazard.per_node_hour(240), hazard.lemons(240)))
    assert ordinary.std() == pytest.approx(hazard.node_log_sd, abs=0.02)
    uniform_rates = sacct.Hazard(node_log_sd=0, lemons_per_64_nodes=0).per_node_hour(240)
    assert uniform_rates.max() == pytest.approx(uniform_rates.min())


# ---- totals that do not change ----


def test_the_totals_are_those_of_independent_jobs(seeded_jobs):
    """The totals are fixed; users and groups only distribute them."""
    _, traces = seeded_jobs
    shares = [jobs["failed"].mean() for jobs in traces]
    assert max(shares) - min(shares) < 0.005


# ---- the draws ----


def test_a_fixed_number_fails_in_proportion_to_odds():
    """In a logistic model, four times the odds give an odds ratio of 4."""
    rng = np.random.default_rng(1)
    odds = np.repeat([1.0, 4.0], 20_000)
    failed = draws.draw_failures(rng, 12_000, odds)
    assert failed.sum() == 12_000
    share_low, share_high = failed[:20_000].mean(), failed[20_000:].mean()
    assert share_high / (1 - share_high) / (share_low / (1 - share_low)) == pytest.approx(4, rel=0.06)
