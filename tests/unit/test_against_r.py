"""Estimators of durations agree with R's package `survival`, if it is installed (make test-tools)."""

import csv
import io
import shutil
import subprocess

import numpy as np
import polars as pl
import pytest
from ttf.analyses.time_to_failure.fit_mttf.compute import lifetime_models
from ttf.stats.durations.cox import RiskSets, fit
from ttf.stats.durations.cox_clusters import ClusteredDurations, effects_by_cluster
from ttf.stats.durations.survival import survival_tables

SCRIPT = """
library(survival)
durations <- read.csv(commandArgs(TRUE)[1], stringsAsFactors = FALSE)
emit <- function(name, ...) cat(name, sprintf("%.17g", c(...)), "\\n", sep = ",")
failed <- Surv(durations$duration_s, durations$event == "failure")
late <- Surv(durations$entry_s, durations$duration_s, durations$event == "failure")
for (kind in c("curve", "late")) {
  fit <- survfit(if (kind == "curve") failed ~ 1 else late ~ 1, conf.type = "log-log")
  for (i in seq_along(fit$time)) emit(kind, fit$time[i], fit$n.risk[i], fit$surv[i], fit$lower[i], fit$upper[i])
}
durations$gpu_type <- relevel(factor(durations$gpu_type), ref = names(which.max(table(durations$gpu_type))))
fit <- coxph(failed ~ gpu_type + log2(nodes), data = durations, ties = "efron", cluster = user)
emit("robust cox", sqrt(diag(vcov(fit))))
robust <- function(groups)
  vcov(coxph(failed ~ gpu_type + log2(nodes), data = durations, ties = "efron", cluster = groups))
both <- interaction(durations$user, durations$week, drop = TRUE)
emit("two-way cox", diag(robust(durations$user) + robust(durations$week) - robust(both)))
for (model in c("exponential", "weibull", "lognormal")) {
  fit <- survreg(failed ~ 1, dist = model)
  emit(model, fit$loglik[1], coef(fit), fit$scale)
}
"""


def rscript() -> str:
    path = shutil.which("Rscript")
    if path is None or subprocess.run([path, "-e", "library(survival)"], capture_output=True, check=False).returncode:
        pytest.skip("R with its package survival is not installed: make test-tools")
    return path


def random_durations(seed: int, count: int = 600) -> pl.DataFrame:
    """Durations with ties, censoring, competing events, late entries and two covariates with an effect."""
    draws = np.random.default_rng(seed)
    gpu_type, nodes = draws.choice(["A100", "H100", "V100"], count, p=[0.5, 0.3, 0.2]), 2 ** draws.integers(0, 5, count)
    rate = np.exp(0.4 * (gpu_type == "V100")) * nodes**0.3
    failure_s = 900 * draws.weibull(0.7, count) / rate
    other_event_s, censoring_s = draws.exponential(900, count), draws.exponential(2_000, count)
    # Steps of 20 s make many ties.
    duration = 20 + 20 * (np.minimum.reduce([failure_s, other_event_s, censoring_s]) // 20).astype(int)
    first_event = np.argmin([failure_s, other_event_s, censoring_s], axis=0)
    other_event = np.where(draws.random(count) < 0.7, "success", "cancelled")
    event = np.select([first_event == 0, first_event == 1], ["failure", other_event], "")
    entry = np.where(draws.random(count) < 0.3, draws.integers(0, 20, count), 0)
    durations = pl.DataFrame(
        {"duration_s": duration, "entry_s": entry, "event": event, "gpu_type": gpu_type, "nodes": nodes}
    )
    user, week = pl.Series(draws.integers(0, 30, count)), pl.Series(draws.integers(0, 9, count))
    return durations.with_columns(pl.lit(None, pl.Int64).alias("duration_max_s"), user=user, week=week)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
    """The durations, and R's results for them: name -> rows of numbers."""
    program = rscript()
    folder, durations = tmp_path_factory.mktemp("r"), random_durations(1)
    durations.write_csv(folder / "durations.csv")
    (folder / "oracle.R").write_text(SCRIPT)
    command = [program, "--vanilla", folder / "oracle.R", folder / "durations.csv"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    r_rows: dict[str, list] = {}
    for name, *numbers in csv.reader(io.StringIO(printed)):
        r_rows.setdefault(name, []).append([float(number.replace("NA", "nan")) for number in numbers if number])
    # A right-censored duration has a blank event.
    durations = durations.with_columns(event=pl.when(pl.col("event") != "").then("event"))
    return durations, {name: np.array(rows) for name, rows in r_rows.items()}


@pytest.mark.parametrize("late", [False, True])
def test_kaplan_meier_curve_and_intervals(oracle, late):
    durations, r_rows = oracle
    curves, _ = survival_tables(durations, "failure", ["all"], delayed_entry=late)
    estimates = curves.filter(pl.col("time_s") > 0).select("time_s", "at_risk", "survival", "ci_low", "ci_high")
    r_curve = r_rows["late" if late else "curve"]
    defined = ~np.isnan(r_curve).any(axis=1) & (r_curve[:, 2] < 1)
    assert estimates.height == len(r_curve)
    assert estimates.to_numpy()[defined] == pytest.approx(r_curve[defined], rel=1e-9)


def test_sandwich_of_hazard_ratios(oracle):
    durations, r_rows = oracle
    columns = [(durations["gpu_type"] == pattern).to_numpy() for pattern in ("H100", "V100")] + [
        np.log2(durations["nodes"].to_numpy())
    ]
    seconds, failed = durations["duration_s"].to_numpy(), (durations["event"] == "failure").fill_null(False).to_numpy()
    patterns, pattern = np.unique(np.stack(columns, axis=1).astype(float), axis=0, return_inverse=True)
    risk_sets = RiskSets(seconds, failed, columns)
    user, week = (durations[name].to_numpy() for name in ("user", "week"))
    durations = ClusteredDurations(user, week, pattern.ravel(), seconds, failed, patterns)
    influence = effects_by_cluster(risk_sets, fit(risk_sets), durations, np.eye(3)).influence
    cells = np.unique(np.stack([user, week]), axis=1)
    by_user, by_week = (np.array([influence[key == k].sum(axis=0) for k in np.unique(key)]) for key in cells)
    assert np.sqrt((by_user**2).sum(axis=0)) == pytest.approx(r_rows["robust cox"][0], rel=1e-6)
    two_way = (by_user**2).sum(axis=0) + (by_week**2).sum(axis=0) - (influence**2).sum(axis=0)
    assert two_way == pytest.approx(r_rows["two-way cox"][0], rel=1e-6)


def test_lifetime_models(oracle):
    durations, r_rows = oracle
    fits = {row["model"]: row for row in lifetime_models(durations, "failure", ["all"]).iter_rows(named=True)}
    # survreg: log T = intercept + scale W; the likelihood is that of seconds.
    (loglik, intercept, _), fit = r_rows["exponential"][0], fits["exponential"]
    assert [fit["loglik"], np.log(fit["scale_s"])] == pytest.approx([loglik, intercept], rel=1e-8)
    (loglik, intercept, scale), fit = r_rows["weibull"][0], fits["weibull"]
    estimates = [fit["loglik"], np.log(fit["scale_s"]), 1 / fit["shape"]]
    assert estimates == pytest.approx([loglik, intercept, scale], rel=1e-6)
    (loglik, intercept, scale), fit = r_rows["lognormal"][0], fits["lognormal"]
    assert [fit["loglik"], fit["mu_log_s"], fit["sigma"]] == pytest.approx([loglik, intercept, scale], rel=1e-6)
