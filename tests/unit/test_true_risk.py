"""The true risks of failure: of the samples, against what became of their jobs, and of the made-up records."""

import json
import math

import made_risk
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm
from ttf.formats import draws
from ttf.formats.pai2020 import sample as pai
from ttf.formats.pai2020 import sample_published as published
from ttf.formats.pai2020.sample_plan import plan_sample
from ttf.formats.philly import sample as philly
from ttf.formats.sacct import sample as sacct
from ttf.jobs import JOB_COLUMNS

JOBS = 20_000


def of_pai(tasks: int, seed: int) -> pl.DataFrame:
    """Tasks that ended: risk, whether they failed, what they have in common, and what else is known of them."""
    sample, truth = plan_sample(tasks, seed), pai.true_risk(tasks, seed)
    of_task = sample.tasks.job
    is_first = np.diff(of_task, prepend=-1) > 0
    rows = truth.with_columns(
        failed=pl.Series(sample.tasks.status == published.FAILED),
        unseen=sample.jobs.group[of_task],
        user=sample.jobs.user[of_task],
        request=sample.tasks.gpu_type * 1_000 + sample.tasks.plan_gpu,
        gpu_type=sample.tasks.gpu_type,
        gang=sample.tasks.instances > 1,
        several=np.bincount(of_task)[of_task] > 1,
        first=is_first,
        late=sample.jobs.submit_s[of_task] >= np.sort(sample.jobs.submit_s)[3 * is_first.sum() // 4],
    )
    return rows.filter(pl.Series(np.isin(sample.tasks.status, [published.FAILED, published.TERMINATED])))


def of_philly(jobs: int, seed: int) -> pl.DataFrame:
    planned, machines = philly.plan(jobs, seed), philly.machine_gpus(jobs)
    there = philly.failed_there(planned, philly.schedule(planned, machines), len(machines), seed)
    return philly.true_risk(jobs, seed).with_columns(
        failed=pl.Series(there.status == philly.FAILED),
        unseen=planned.campaign,
        user=planned.user,
        request=planned.bucket,
        first=True,
    )


def of_sacct(jobs: int, seed: int) -> pl.DataFrame:
    planned = sacct.plan(jobs, seed)
    return sacct.true_risk(jobs, seed).with_columns(
        failed=pl.Series(np.isin(planned.jobs.state, sacct.FAILURES)),
        unseen=planned.campaign,
        user=planned.user,
        request=pl.lit(0),
        first=True,
    )


SAMPLES = {"pai2020": of_pai, "philly": of_philly, "sacct": of_sacct}


@pytest.fixture(scope="module", params=SAMPLES)
def rows(request) -> pl.DataFrame:
    return SAMPLES[request.param](JOBS, 1)


def calibration(failed, risk, unseen) -> tuple[np.ndarray, np.ndarray]:
    """Intercept and slope of the logistic regression of failure on the log odds of the risk; their standard errors.

    Jobs that share what cannot be seen do not fail independently of each other: the errors are clustered by it.
    """
    given_ = np.column_stack([np.ones(len(risk)), logit(risk)])
    at = np.array([0.0, 1.0])
    for _ in range(20):
        fitted = expit(given_ @ at)
        scores = given_ * (failed - fitted)[:, None]
        inverse = np.linalg.inv(given_.T @ (given_ * (fitted * (1 - fitted))[:, None]))
        at = at + inverse @ scores.sum(axis=0)
    code = np.unique(unseen, return_inverse=True)[1]
    by_cluster = np.column_stack([np.bincount(code, weights=column) for column in scores.T])
    return at, np.sqrt(np.diag(inverse @ by_cluster.T @ by_cluster @ inverse))


def average_precision(failed, risk) -> float:
    """Area under precision against recall, by steps at each distinct risk."""
    order = np.argsort(-risk, kind="stable")
    is_last = np.append(np.diff(risk[order]) != 0, True)
    found, flagged = np.cumsum(failed[order])[is_last], np.flatnonzero(is_last) + 1
    return float((np.diff(found, prepend=0) * found / flagged).sum() / found[-1])


# ---- the samples ----


def test_as_many_fail_as_the_risks_say(rows):
    assert rows["risk"].is_between(0, 1, closed="none").all()
    assert rows["risk"].mean() == pytest.approx(rows["failed"].mean(), rel=1e-9)


def test_risks_are_calibrated(rows):
    """The slope of 1 within three standard errors; that of Philly is a little larger, as its docstring says."""
    failed, risk, unseen = (rows[name].to_numpy() for name in ("failed", "risk", "unseen"))
    (intercept, slope), (error, error_of_slope) = calibration(failed, risk, unseen)
    assert slope == pytest.approx(1, abs=3 * error_of_slope)
    assert intercept == pytest.approx(0, abs=3 * error)
    assert error_of_slope < 0.03


@pytest.mark.parametrize("sample", SAMPLES)
def test_risks_are_calibrated_in_the_mean_of_seeds(sample):
    """Where the risks left out an effect that can be seen, or took in one that cannot, the slope would move away."""
    found = []
    for seed in range(10, 12):
        rows = SAMPLES[sample](JOBS, seed)
        found.append(calibration(*(rows[name].to_numpy() for name in ("failed", "risk", "unseen")))[0])
    assert np.mean(found, axis=0) == pytest.approx([0, 1], abs=0.045)


def test_risks_of_each_tenth_are_met(rows):
    """Of the jobs in each tenth of the risks as many fail as should, within four standard errors of clusters."""
    tenth = (pl.col("risk").rank("ordinal") * 10 // (pl.len() + 1)).alias("tenth")
    apart = rows.with_columns(tenth, gap=pl.col("failed").cast(pl.Float64) - pl.col("risk"))
    by_cluster = apart.group_by("tenth", "unseen").agg(pl.col("gap").sum())
    z = by_cluster.group_by("tenth").agg(z=pl.col("gap").sum() / (pl.col("gap") ** 2).sum().sqrt())["z"]
    assert z.len() == 10
    assert z.abs().max() < 4


@pytest.mark.parametrize("habit", ["late", "gang", "several", "gpu_type", "first"])
def test_risks_of_the_pai_sample_know_what_can_be_seen(habit):
    rows = of_pai(JOBS, 2)
    parts = rows.group_by(habit).agg(
        pl.len(), pl.col("failed", "risk").mean(), gap=(pl.col("failed") - pl.col("risk")).mean()
    )
    parts = parts.with_columns(error=(pl.col("risk") * (1 - pl.col("risk")) / pl.col("len")).sqrt())
    assert (parts["gap"].abs() < 3.5 * parts["error"]).all()
    assert parts["failed"].max() > 1.1 * parts["failed"].min()


def test_jobs_of_a_user_and_a_request_have_one_risk(rows):
    keys = ["user", "request"]
    if "late" in rows.columns:
        keys += ["unseen", "late", "gang", "several", "first"]
    # Equal to the last bit: they are reckoned from one number.
    assert rows.group_by(keys).agg(pl.col("risk").n_unique())["risk"].max() == 1
    assert rows.group_by("request").agg(pl.col("risk").n_unique())["risk"].max() > 20


def test_the_truth_ranks_better_than_chance(rows):
    """Average precision of a ranking that knows nothing is the share of failures."""
    assert average_precision(rows["failed"].to_numpy(), rows["risk"].to_numpy()) > 1.4 * rows["failed"].mean()


def test_average_precision_by_hand():
    """In order: hit, miss, two of one risk (a hit, a miss): 1/2 x 1 + 1/2 x 2/4."""
    failed = np.array([True, False, True, False])
    assert average_precision(failed, np.array([0.9, 0.8, 0.3, 0.3])) == pytest.approx(0.75)


# ---- whose risks they are ----


def test_risks_are_those_of_the_written_tasks(tmp_path):
    pai.write_sample(tmp_path, 1_000, 3)
    written = pl.read_csv(tmp_path / pai.FILES["task"], has_header=False, infer_schema=False)
    assert pai.true_risk(1_000, 3).select("job_id", "task").rows() == written[:, :2].rows()


def test_risks_are_those_of_the_written_jobs_of_philly(tmp_path):
    philly.write_sample(tmp_path, 300, 3)
    log = json.loads((tmp_path / philly.FILES["job_log"]).read_text())
    assert philly.true_risk(300, 3)["job_id"].to_list() == [job["jobid"] for job in log]


def test_risks_are_those_of_the_written_jobs_of_slurm(tmp_path):
    sacct.write_sample(tmp_path, 300, 3)
    dumps = [
        pl.read_csv(tmp_path / sacct.FILES[name], separator="|", infer_schema=False)
        for name in ("record_a", "record_b")
    ]
    ids = pl.concat(dump["JobIDRaw"] for dump in dumps).unique()
    missing = ids.filter(~ids.str.contains(r"\.") & ~ids.is_in(sacct.true_risk(300, 3)["job_id"].implode()))
    # The array that still waits has none.
    assert missing.to_list() == [str(sacct.FIRST_ID + 300)]


@pytest.mark.parametrize("sample", [pai, philly, sacct])
def test_the_smallest_samples_have_risks(sample):
    fewest = getattr(sample, "FEWEST_JOBS", None) or sample.FEWEST_TASKS
    risks = sample.true_risk(fewest, 0)
    assert risks.height == fewest
    assert risks["risk"].is_between(0, 1, closed="none").all()
    assert risks.equals(sample.true_risk(fewest, 0))
    assert not risks.equals(sample.true_risk(fewest, 1))


# ---- the draws ----


def test_risks_are_how_often_entries_fail():
    """Against 2,000 draws of 20 of 60 entries, in units of the standard error."""
    rng = np.random.default_rng(1)
    odds = draws.lognormal(rng, 60, 1.0)
    fails = np.array([draws.which_fail(rng, 20, odds) for _ in range(2_000)])
    risk = draws.risk_of(odds, 20)
    z = (fails.mean(axis=0) - risk) / np.sqrt(risk * (1 - risk) / 2_000)
    assert np.abs(z).max() < 4
    assert (z**2).mean() < 1.6


@given(
    odds=st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=40).map(np.array),
    part=st.floats(0.01, 0.99),
    unseen=st.sampled_from([0.0, 0.5, 2.0]),
)
def test_risks_add_up_and_rise_with_the_odds(odds, part, unseen):
    number = part * len(odds)
    risk = draws.risk_of(odds, number, unseen)
    assert risk.sum() == pytest.approx(number, rel=1e-10)
    assert (np.diff(risk[np.argsort(odds, kind="stable")]) >= 0).all()
    assert risk == pytest.approx(draws.risk_of(7 * odds, number, unseen), rel=1e-9)


@given(odds=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=40).map(np.array), part=st.floats(0.01, 0.99))
def test_the_scale_is_where_scipy_finds_it(odds, part):
    number = part * len(odds)
    at = brentq(lambda log: expit(log + np.log(odds)).sum() - number, -30, 30, xtol=1e-14)
    assert math.log(draws.scale_of(odds, number)) == pytest.approx(at, abs=1e-9)


def test_two_kinds_in_closed_form():
    """2 c / (1 + c) + 2 · 3 c / (1 + 3 c) = 2 where 3 c² = 1."""
    assert draws.scale_of(np.array([1.0, 1.0, 3.0, 3.0]), 2) == pytest.approx(1 / math.sqrt(3), rel=1e-14)
    assert draws.risk_of(np.full(8, 5.0), 2) == pytest.approx(np.full(8, 0.25), rel=1e-14)


@pytest.mark.parametrize("log_sd", [0.4, 0.64, 1.0])
def test_what_cannot_be_seen_is_averaged(log_sd):
    """Against numerical integration of the logistic curve over a normal distribution."""
    at = draws.chance(0.3, np.array([0.1, 1.0, 8.0]), log_sd)
    for odds, found in zip((0.1, 1.0, 8.0), at, strict=True):
        log_odds = math.log(0.3 * odds)
        mean, _ = quad(lambda z, log_odds=log_odds: expit(log_odds + log_sd * z) * norm.pdf(z), -10, 10)
        assert found == pytest.approx(mean, rel=1e-7)


def test_none_and_all_fail():
    odds = np.array([0.5, 2.0, 9.0])
    assert draws.risk_of(odds, 0).tolist() == [0, 0, 0]
    assert draws.risk_of(odds, 3, 0.5).tolist() == pytest.approx([1, 1, 1])


# ---- made-up records ----

MADE = {
    "users": lambda n, seed: made_risk.with_users(n, seed),
    "coin": lambda n, seed: made_risk.coin(n, seed),
    "shuffled": lambda n, seed: made_risk.shuffled_in(n, seed, 5),
}


@pytest.mark.parametrize("kind", MADE)
def test_made_up_records_are_job_records(kind):
    jobs = MADE[kind](5_000, 1)
    assert {name: jobs.schema[name] for name in JOB_COLUMNS} == {name: kind_() for name, kind_ in JOB_COLUMNS.items()}
    assert jobs["job_id"].n_unique() == 5_000
    assert jobs["submit_s"].is_sorted()
    assert jobs["cluster_by"].unique().to_list() == ["user"]
    assert jobs["group_by"].unique().to_list() == ["recurrence group"]
    assert set(jobs["outcome"]) - {"waiting"} == {"success", "failure", "cancelled", "unknown", "running"}
    running = jobs.filter(pl.col("outcome") == "running")
    assert running.height > 20
    assert running.select(pl.col("end_s", "runtime_s").null_count()).row(0) == (running.height, running.height)
    unwritten = jobs.filter(pl.col("outcome") == "failure")["end_s"].is_null().mean()
    assert unwritten == pytest.approx(made_risk.NO_END, abs=0.03)
    known = jobs.drop_nulls("runtime_s")
    assert (known["end_s"] - known["start_s"] == known["runtime_s"]).all()
    assert (known["end_s"] < known["trace_end_s"]).all()
    assert (jobs["submit_s"] <= jobs["start_s"].fill_null(jobs["trace_end_s"])).all()
    assert jobs.equals(MADE[kind](5_000, 1))


@pytest.mark.parametrize("kind", MADE)
def test_made_up_jobs_fail_as_often_as_their_risks_say(kind):
    jobs = MADE[kind](100_000, 2).filter(~pl.col("outcome").is_in(["running", "waiting"]))
    failed, risk = (jobs["outcome"] == "failure").to_numpy(), jobs["true_risk"].to_numpy()
    assert failed.mean() == pytest.approx(risk.mean(), abs=0.006)
    if kind == "coin":
        assert np.unique(risk).tolist() == [made_risk.SHARE]
    else:
        (intercept, slope), (error, error_of_slope) = calibration(failed, risk, np.arange(len(risk)))
        assert slope == pytest.approx(1, abs=3 * error_of_slope)
        # What still runs at the end, and is left out, has failed less often.
        assert intercept == pytest.approx(0, abs=3 * error + 0.02)


def test_made_up_coins_do_not_know_users():
    jobs = made_risk.coin(100_000, 3).filter(~pl.col("outcome").is_in(["running", "waiting"]))
    share = (pl.col("outcome") == "failure").mean()
    spread = jobs.group_by("user").agg(share, n=pl.len()).filter(pl.col("n") > 50)
    overall = jobs.select(share).item()
    z = (spread["outcome"] - overall) / (overall * (1 - overall) / spread["n"]).sqrt()
    assert (z**2).mean() == pytest.approx(1, abs=0.25)


def test_one_week_is_shuffled_and_no_other():
    """Of that week the risks of users say nothing of who fails; its share and all else are as they were."""
    plain, other = made_risk.with_users(100_000, 4), made_risk.shuffled_in(100_000, 4, 5)
    week = ((plain["submit_s"] - made_risk.FIRST_S) // made_risk.WEEK_S).alias("week")
    before, after = (jobs.with_columns(week, failed=pl.col("outcome") == "failure") for jobs in (plain, other))
    outside = pl.col("week") != 5
    assert before.filter(outside)["true_risk"].equals(after.filter(outside)["true_risk"])
    assert before.filter(outside)["failed"].equals(after.filter(outside)["failed"])
    assert before.select("user", "submit_s", "gpu_milli").equals(after.select("user", "submit_s", "gpu_milli"))
    of_week = before.filter(~outside).select("true_risk", "failed"), after.filter(~outside).select("failed")
    assert abs(of_week[0]["failed"].sum() - of_week[1]["failed"].sum()) < 100
    risks = of_week[0]["true_risk"].to_numpy()
    apart = [risks[failed].mean() - risks[~failed].mean() for failed in (of["failed"].to_numpy() for of in of_week)]
    assert apart[0] > 0.1
    assert apart[1] == pytest.approx(0, abs=0.02)


def test_made_up_run_times_are_lognormal_by_size():
    jobs = made_risk.with_users(100_000, 5)
    # Early ones, of which none still runs.
    early = jobs.filter(pl.col("submit_s") < made_risk.FIRST_S + 5 * made_risk.WEEK_S).drop_nulls("runtime_s")
    for outcome, median_s in (("failure", made_risk.FAILED_MEDIAN_S), ("success", made_risk.OTHER_MEDIAN_S)):
        for gpus in made_risk.GPUS:
            alike = early.filter((pl.col("outcome") == outcome) & (pl.col("gpu_milli") == 1_000 * gpus))
            logs = alike["runtime_s"].log()
            expected = math.log(median_s) + made_risk.BY_DOUBLING * math.log2(gpus)
            assert logs.median() == pytest.approx(expected, abs=5.5 * made_risk.RUN_LOG_SD / math.sqrt(len(logs)))
            assert logs.std() == pytest.approx(made_risk.RUN_LOG_SD, rel=0.05)


def test_late_weeks_bring_users_groups_and_a_type_not_seen_before():
    jobs = made_risk.with_users(50_000, 6)
    is_late = pl.col("submit_s") >= made_risk.FIRST_S + 7 * made_risk.WEEK_S
    before, after = jobs.filter(~is_late), jobs.filter(is_late)
    for column, share in (("user", 0.03), ("recurrence_group", 0.2)):
        assert (~after[column].is_in(before[column].unique().implode())).mean() > share
    third = jobs.filter(pl.col("submit_s") < made_risk.FIRST_S + 5 * made_risk.WEEK_S)
    assert "C" not in third["gpu_type"].to_list()
    assert (after["gpu_type"] == "C").mean() > 0.2
