"""The group of jobs with excess failures: an action of the report, and how often chance makes one."""

import numpy as np
import polars as pl
from ttf.analyses.quality.summarise_results.compute import find_bad_group
from ttf.stats.clustered import clustered_shares

ACCOUNTS, USERS, JOBS = 8, 12, 60


def make_strata(random: np.random.Generator, bad_logit: float = 0.0) -> pl.DataFrame:
    """Return strata of accounts whose users differ (SD of the logit 0.8); the first one's logit is higher."""
    account = np.repeat(np.arange(ACCOUNTS), USERS * JOBS)
    user = np.repeat(np.arange(ACCOUNTS * USERS), JOBS)
    logits = random.normal(-1.5, 0.8, ACCOUNTS * USERS)[user] + bad_logit * (account == 0)
    failed = random.random(user.size) < 1 / (1 + np.exp(-logits))
    jobs = pl.DataFrame({"account": account, "cluster": user.astype(np.uint32), "failed": failed})
    jobs = jobs.with_columns(cluster_by=pl.lit("user"), gpu_hours=pl.lit(2.0))
    parts = []
    for stratum_by, label in (("all", pl.lit("all")), ("account", pl.format("a{}", "account"))):
        rows = jobs.with_columns(stratum=label)
        limits = clustered_shares(rows, ["stratum"], pl.col("failed").sum(), pl.len())
        sums = rows.group_by("stratum").agg(
            ended=pl.len(),
            failures=pl.col("failed").sum(),
            failure_share=pl.col("failed").mean(),
            gpu_hours=pl.col("gpu_hours").sum(),
            failed_gpu_hours=pl.col("gpu_hours").filter("failed").sum(),
        )
        parts.append(sums.join(limits, on="stratum").with_columns(stratum_by=pl.lit(stratum_by)))
    return pl.concat(parts, how="diagonal")


def test_a_bad_team_is_found_and_chance_seldom_makes_one():
    random = np.random.default_rng(45)
    assert sum(bool(find_bad_group(make_strata(random))) for _ in range(50)) <= 5
    found_rows = [find_bad_group(make_strata(random, 2.0)) for _ in range(10)]
    assert [[row["group"] for row in rows] for rows in found_rows].count(["a0"]) >= 9


def test_the_excess_is_what_the_share_of_all_others_leaves():
    strata = make_strata(np.random.default_rng(1), 2.5)
    (row,) = find_bad_group(strata)
    whole, bad = (strata.filter(stratum=name).row(0, named=True) for name in ("all", "a0"))
    share = (whole["failures"] - bad["failures"]) / (whole["ended"] - bad["ended"])
    assert (row["group_by"], row["group"], row["failures"]) == ("account", "a0", bad["failures"])
    assert np.allclose([row["expected"], row["gpu_hours"]], [share * 720, bad["failed_gpu_hours"] - share * 1440])
    assert find_bad_group(strata.filter(pl.col("stratum").is_in(["all", "a1", "a2"]))) == []
