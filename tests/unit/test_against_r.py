"""Estimators of lives against the package `survival` of R, where it is installed (make test-tools)."""

import csv
import io
import shutil
import subprocess
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from ttf.analyses.factors.estimate_hazards.cox import RiskSets, fit
from ttf.analyses.factors.estimate_hazards.cox_clusters import ClusteredDurations, dfbeta_by_cluster
from ttf.analyses.factors.estimate_hazards.hazard_ratios import hazard_ratios
from ttf.analyses.factors.estimate_hazards.incidence import _curves, cumulative_incidence
from ttf.analyses.factors.estimate_hazards.logrank import logrank
from ttf.analyses.time_to_failure.fit_mttf.lifetimes import lifetime_models
from ttf.records.clusters import with_levels
from ttf.stats.basics.normal import Z_95
from ttf.stats.durations.clustered_lives import Influences
from ttf.stats.durations.mcf import mean_cumulative
from ttf.stats.durations.renewal import repair_times
from ttf.stats.durations.strata import CountedLives, competing_times_by_stratum
from ttf.stats.durations.survival import _log_survival_parts, _steps, survival_tables

SCRIPT = """
library(survival)
lives <- read.csv(commandArgs(TRUE)[1], stringsAsFactors = FALSE)
said <- function(what, ...) cat(what, sprintf("%.17g", c(...)), "\\n", sep = ",")
failed <- Surv(lives$duration_s, lives$event == "failure")
late <- Surv(lives$entry_s, lives$duration_s, lives$event == "failure")
for (kind in c("curve", "late")) {
  fit <- survfit(if (kind == "curve") failed ~ 1 else late ~ 1, conf.type = "log-log")
  for (i in seq_along(fit$time)) said(kind, fit$time[i], fit$n.risk[i], fit$surv[i], fit$lower[i], fit$upper[i])
}
fit <- survfit(failed ~ 1, conf.type = "log-log")
said("median", quantile(fit, 0.5)$quantile, quantile(fit, 0.5)$lower, quantile(fit, 0.5)$upper)
said("mean", summary(fit, rmean = max(lives$duration_s))$table[c("rmean", "se(rmean)")])
ends <- factor(lives$event, levels = c("", "failure", "success", "cancelled"))
fit <- survfit(Surv(lives$duration_s, ends) ~ 1)
for (i in seq_along(fit$time)) said("incidence", fit$time[i], fit$pstate[i, 2:4])
tested <- survdiff(failed ~ lives$gpu_type)
said("logrank", tested$chisq, length(tested$n) - 1)
lives$gpu_type <- relevel(factor(lives$gpu_type), ref = names(which.max(table(lives$gpu_type))))
fit <- coxph(failed ~ gpu_type + log2(nodes), data = lives, ties = "efron")
for (name in names(coef(fit)))
  said(name, exp(coef(fit)[name]), exp(confint(fit)[name, ]), summary(fit)$coefficients[name, 5])
fit <- survfit(failed ~ 1, cluster = lives$user, robust = TRUE)
for (i in seq_along(fit$time)) said("robust", fit$time[i], fit$std.err[i], fit$std.chaz[i])
fit <- survfit(Surv(lives$duration_s, ends) ~ 1, id = seq_len(nrow(lives)), influence = TRUE)
for (state in 2:4)
  said("robust incidence", sqrt(colSums(rowsum(fit$influence.pstate[, , state], lives$user)^2)))
fit <- coxph(failed ~ gpu_type + log2(nodes), data = lives, ties = "efron", cluster = user)
said("robust cox", sqrt(diag(vcov(fit))))
for (model in c("exponential", "weibull", "lognormal")) {
  fit <- survreg(failed ~ 1, dist = model)
  said(model, fit$loglik[1], coef(fit), fit$scale)
}
"""


def rscript() -> str:
    found = shutil.which("Rscript")
    if found is None or subprocess.run([found, "-e", "library(survival)"], capture_output=True, check=False).returncode:
        pytest.skip("R with its package survival is not installed: make test-tools")
    return found


def made(seed: int, count: int = 600) -> pl.DataFrame:
    """Lives with ties, censoring, competing ends, late entries and two covariates that matter."""
    draws = np.random.default_rng(seed)
    gpu_type, nodes = draws.choice(["A100", "H100", "V100"], count, p=[0.5, 0.3, 0.2]), 2 ** draws.integers(0, 5, count)
    rate = np.exp(0.4 * (gpu_type == "V100")) * nodes**0.3
    to_failure = 900 * draws.weibull(0.7, count) / rate
    to_other, to_censoring = draws.exponential(900, count), draws.exponential(2_000, count)
    # In steps of 20 s, so that many are equal.
    duration = 20 + 20 * (np.minimum.reduce([to_failure, to_other, to_censoring]) // 20).astype(int)
    first = np.argmin([to_failure, to_other, to_censoring], axis=0)
    other = np.where(draws.random(count) < 0.7, "success", "cancelled")
    event = np.select([first == 0, first == 1], ["failure", other], "")
    entry = np.where(draws.random(count) < 0.3, draws.integers(0, 20, count), 0)
    lives = pl.DataFrame(
        {"duration_s": duration, "entry_s": entry, "event": event, "gpu_type": gpu_type, "nodes": nodes}
    )
    user = pl.Series(draws.integers(0, 30, count))
    return lives.with_columns(pl.lit(None, pl.Int64).alias("duration_max_s"), user=user)


@pytest.fixture(scope="module", params=[1, 2])
def both(request, tmp_path_factory) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
    """The lives, and what R says of them: name -> its rows."""
    program = rscript()
    folder, lives = tmp_path_factory.mktemp("r"), made(request.param)
    lives.write_csv(folder / "lives.csv")
    (folder / "oracle.R").write_text(SCRIPT)
    command = [program, "--vanilla", folder / "oracle.R", folder / "lives.csv"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    said: dict[str, list] = {}
    for name, *numbers in csv.reader(io.StringIO(printed)):
        said.setdefault(name, []).append([float(number.replace("NA", "nan")) for number in numbers if number])
    # A right-censored life has a blank event.
    lives = lives.with_columns(event=pl.when(pl.col("event") != "").then("event"))
    return lives, {name: np.array(rows) for name, rows in said.items()}


@pytest.mark.parametrize("late", [False, True])
def test_kaplan_meier_with_its_intervals(both, late):
    lives, said = both
    curves, _ = survival_tables(lives, "failure", ["all"], delayed_entry=late)
    ours = curves.filter(pl.col("time_s") > 0).select("time_s", "at_risk", "survival", "ci_low", "ci_high")
    theirs = said["late" if late else "curve"]
    defined = ~np.isnan(theirs).any(axis=1) & (theirs[:, 2] < 1)
    assert ours.height == len(theirs)
    assert ours.to_numpy()[defined] == pytest.approx(theirs[defined], rel=1e-9)


def test_median_and_restricted_mean(both):
    lives, said = both
    _, summary = survival_tables(lives, "failure", ["all"])
    row = summary.row(0, named=True)
    assert [row["median_s"], row["median_ci_low_s"], row["median_ci_high_s"]] == pytest.approx(said["median"][0])
    assert row["horizon_s"] == lives["duration_s"].max()
    assert [row["restricted_mean_s"], row["restricted_mean_se_s"]] == pytest.approx(said["mean"][0], rel=1e-9)


def test_cumulative_incidence_of_competing_ends(both):
    lives, said = both
    curves = cumulative_incidence(lives, ["failure", "success", "cancelled"], ["all"]).filter(pl.col("time_s") > 0)
    for place, event in enumerate(("failure", "success", "cancelled"), start=1):
        ours = curves.filter(event=event).select("time_s", "incidence").to_numpy()
        assert ours == pytest.approx(said["incidence"][:, [0, place]], rel=1e-9, abs=1e-12)


def test_log_rank(both):
    lives, said = both
    overall = logrank(lives, "failure", ["gpu_type"]).filter(kind="overall")
    assert overall.select("statistic", "df").row(0) == pytest.approx(said["logrank"][0], rel=1e-9)


def test_cox_with_efrons_ties(both):
    lives, said = both
    table = hazard_ratios(lives, "failure", ["gpu_type", "nodes"])
    found = {row["level"]: row for row in table.iter_rows(named=True) if row["hazard_ratio"] is not None}
    for name, theirs in (("H100", "gpu_typeH100"), ("V100", "gpu_typeV100"), ("per doubling", "log2(nodes)")):
        ours = [found[name][column] for column in ("hazard_ratio", "ci_low", "ci_high", "p_value")]
        assert ours == pytest.approx(said[theirs][0], rel=1e-6)


def test_spread_over_clusters_of_curves(both):
    """The infinitesimal jackknife summed by cluster; R's has no 1 - h, so neither has ours here."""
    lives, said = both
    counted = CountedLives(with_levels(lives, {"user": ["user"]}), ["failure", "success", "cancelled"])
    of = counted.by_cluster("all")["all"]
    of.__dict__["pull"] = np.ones(30)
    ((_, competing),) = competing_times_by_stratum(counted, counted.events, "all")
    competing = [times.from_zero() for times in competing]
    steps = _steps(competing[0])
    influences = Influences(of, steps["time_s"])
    survival = influences.added(*_log_survival_parts(steps["at_risk"], steps["events"], 1)).se()
    assert (steps["survival"] * survival)[1:] == pytest.approx(said["robust"][:, 1], rel=1e-9)
    passed = np.cumsum(steps["events"] / steps["at_risk"] ** 2)
    hazard = influences.added([None, 1 / steps["at_risk"]], passed).se()
    assert hazard[1:] == pytest.approx(said["robust"][:, 2], rel=1e-9)
    for curve, theirs in zip(_curves(competing, of, [1, 2, 3]), said["robust incidence"], strict=True):
        at, low = curve["incidence"], curve["ci_low_clustered"]
        known = ~np.isnan(low) & (at > 0)
        ours = np.log(np.log(low[known]) / np.log(at[known])) / of.student() * -at[known] * np.log(at[known])
        assert ours == pytest.approx(theirs[known], rel=1e-8)


def test_sandwich_of_hazard_ratios(both):
    lives, said = both
    columns = [(lives["gpu_type"] == kind).to_numpy() for kind in ("H100", "V100")] + [
        np.log2(lives["nodes"].to_numpy())
    ]
    seconds, failed = lives["duration_s"].to_numpy(), (lives["event"] == "failure").fill_null(False).to_numpy()
    kinds, kind = np.unique(np.stack(columns, axis=1).astype(float), axis=0, return_inverse=True)
    risk_sets = RiskSets(seconds, failed, columns)
    alike = ClusteredDurations(lives["user"].to_numpy(), kind.ravel(), seconds, failed, kinds)
    moved = dfbeta_by_cluster(risk_sets, fit(risk_sets), alike, one_step=False)
    assert np.sqrt((moved**2).sum(axis=0)) == pytest.approx(said["robust cox"][0], rel=1e-6)


def test_lifetime_models(both):
    lives, said = both
    fits = {row["model"]: row for row in lifetime_models(lives, "failure", ["all"]).iter_rows(named=True)}
    # survreg: log T = intercept + scale W; the likelihood is that of seconds.
    (loglik, intercept, _), fit = said["exponential"][0], fits["exponential"]
    assert [fit["loglik"], np.log(fit["scale_s"])] == pytest.approx([loglik, intercept], rel=1e-8)
    (loglik, intercept, scale), fit = said["weibull"][0], fits["weibull"]
    found = [fit["loglik"], np.log(fit["scale_s"]), 1 / fit["shape"]]
    assert found == pytest.approx([loglik, intercept, scale], rel=1e-6)
    (loglik, intercept, scale), fit = said["lognormal"][0], fits["lognormal"]
    assert [fit["loglik"], fit["mu_log_s"], fit["sigma"]] == pytest.approx([loglik, intercept, scale], rel=1e-6)


OUTAGES = """
library(survival)
watched <- read.csv(commandArgs(TRUE)[1])
said <- function(what, ...) cat(what, sprintf("%.17g", c(...)), "\\n", sep = ",")
fit <- survfit(Surv(from, until, event) ~ 1, data = watched, id = unit, cluster = unit, robust = TRUE)
for (i in which(fit$n.event > 0)) said("mcf", fit$time[i], fit$n.risk[i], fit$cumhaz[i], fit$std.chaz[i])
said("repair", quantile(survfit(Surv(watched$down, watched$ended) ~ 1), c(0.5, 0.9))$quantile)
said("restricted", summary(survfit(Surv(watched$down, watched$ended) ~ 1), rmean = 40)$table["rmean"])
"""


def test_outages(tmp_path):
    """The mean cumulative function of units that come and go, with its spread; repairs of which some are open."""
    program, draws = rscript(), np.random.default_rng(5)
    begin, end = draws.integers(0, 40, 30), draws.integers(60, 100, 30)
    at = [
        np.unique(draws.integers(first + 1, last + 1, draws.poisson(3))) for first, last in zip(begin, end, strict=True)
    ]
    edges = [np.unique([first, *times, last]) for first, times, last in zip(begin, at, end, strict=True)]
    rows = [(unit, first, last, int(last in at[unit])) for unit, of in enumerate(edges) for first, last in pairwise(of)]
    watched = pl.DataFrame(rows, schema=["unit", "from", "until", "event"], orient="row")
    watched = watched.with_columns(
        down=pl.Series(draws.integers(0, 60, len(rows))), ended=draws.random(len(rows)) < 0.7
    )
    watched.with_columns(pl.col("ended").cast(pl.Int64)).write_csv(tmp_path / "watched.csv")
    (tmp_path / "oracle.R").write_text(OUTAGES)
    command = [program, "--vanilla", tmp_path / "oracle.R", tmp_path / "watched.csv"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    said = [
        (name, [float(number) for number in numbers if number]) for name, *numbers in csv.reader(io.StringIO(printed))
    ]
    times, units = np.concatenate(at), np.repeat(np.arange(30), [len(of) for of in at])
    found = mean_cumulative(times, units, begin, end, np.arange(30), 2000)
    se = np.log(found["ci_high"] / found["mcf"]) / Z_95 * found["mcf"]
    ours = np.column_stack([found["time_s"], found["at_risk"], found["mcf"], se])
    assert ours == pytest.approx(np.array([numbers for name, numbers in said if name == "mcf"]), rel=1e-9)
    times = repair_times(watched["down"].to_numpy(), watched["ended"].to_numpy())
    assert [times["median_s"], times["p90_s"]] == pytest.approx(dict(said)["repair"])
    within = watched.select(pl.col("down").clip(upper_bound=40), ended=pl.col("ended") & (pl.col("down") <= 40))
    restricted = repair_times(within["down"].to_numpy(), within["ended"].to_numpy())["restricted_mean_s"]
    assert restricted == pytest.approx(dict(said)["restricted"][0])
