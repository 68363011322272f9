"""Estimators of durations agree with R's package `survival`, if it is installed (make test-tools)."""

import csv
import io
import shutil
import subprocess
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from ttf.analyses.factors.estimate_hazards.cox import RiskSets, fit
from ttf.analyses.factors.estimate_hazards.cox_clusters import ClusteredDurations, effects_by_cluster
from ttf.analyses.factors.estimate_hazards.hazard_ratios import hazard_ratios
from ttf.analyses.factors.estimate_hazards.incidence import _curves, cumulative_incidence
from ttf.analyses.factors.estimate_hazards.logrank import logrank
from ttf.analyses.time_to_failure.fit_mttf.lifetimes import lifetime_models
from ttf.records.clusters import add_levels
from ttf.stats.basics.normal import Z_95
from ttf.stats.durations.clustered_durations import Influences
from ttf.stats.durations.mcf import mean_cumulative
from ttf.stats.durations.renewal import repair_times
from ttf.stats.durations.strata import CountedDurations, iterate_competing_times
from ttf.stats.durations.survival import _kaplan_meier_steps, _log_survival_parts, survival_tables

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
fit <- survfit(failed ~ 1, conf.type = "log-log")
emit("median", quantile(fit, 0.5)$quantile, quantile(fit, 0.5)$lower, quantile(fit, 0.5)$upper)
emit("mean", summary(fit, rmean = max(durations$duration_s))$table[c("rmean", "se(rmean)")])
ends <- factor(durations$event, levels = c("", "failure", "success", "cancelled"))
fit <- survfit(Surv(durations$duration_s, ends) ~ 1)
for (i in seq_along(fit$time)) emit("incidence", fit$time[i], fit$pstate[i, 2:4])
tested <- survdiff(failed ~ durations$gpu_type)
emit("logrank", tested$chisq, length(tested$n) - 1)
durations$gpu_type <- relevel(factor(durations$gpu_type), ref = names(which.max(table(durations$gpu_type))))
fit <- coxph(failed ~ gpu_type + log2(nodes), data = durations, ties = "efron")
for (name in names(coef(fit)))
  emit(name, exp(coef(fit)[name]), exp(confint(fit)[name, ]), summary(fit)$coefficients[name, 5])
fit <- survfit(failed ~ 1, cluster = durations$user, robust = TRUE)
for (i in seq_along(fit$time)) emit("robust", fit$time[i], fit$std.err[i], fit$std.chaz[i])
fit <- survfit(Surv(durations$duration_s, ends) ~ 1, id = seq_len(nrow(durations)), influence = TRUE)
for (state in 2:4)
  emit("robust incidence", sqrt(colSums(rowsum(fit$influence.pstate[, , state], durations$user)^2)))
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


@pytest.fixture(scope="module", params=[1, 2])
def oracle(request, tmp_path_factory) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
    """The durations, and R's results for them: name -> rows of numbers."""
    program = rscript()
    folder, durations = tmp_path_factory.mktemp("r"), random_durations(request.param)
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


def test_median_and_restricted_mean(oracle):
    durations, r_rows = oracle
    _, summary = survival_tables(durations, "failure", ["all"])
    row = summary.row(0, named=True)
    assert [row["median_s"], row["median_ci_low_s"], row["median_ci_high_s"]] == pytest.approx(r_rows["median"][0])
    assert row["horizon_s"] == durations["duration_s"].max()
    assert [row["restricted_mean_s"], row["restricted_mean_se_s"]] == pytest.approx(r_rows["mean"][0], rel=1e-9)


def test_cumulative_incidence_of_competing_ends(oracle):
    durations, r_rows = oracle
    curves = cumulative_incidence(durations, ["failure", "success", "cancelled"], ["all"]).filter(pl.col("time_s") > 0)
    for column_index, event in enumerate(("failure", "success", "cancelled"), start=1):
        estimates = curves.filter(event=event).select("time_s", "incidence").to_numpy()
        assert estimates == pytest.approx(r_rows["incidence"][:, [0, column_index]], rel=1e-9, abs=1e-12)


def test_log_rank(oracle):
    durations, r_rows = oracle
    overall = logrank(durations, "failure", ["gpu_type"]).filter(kind="overall")
    assert overall.select("statistic", "df").row(0) == pytest.approx(r_rows["logrank"][0], rel=1e-9)


def test_cox_with_efron_ties(oracle):
    durations, r_rows = oracle
    table = hazard_ratios(durations, "failure", ["gpu_type", "nodes"])
    row_by_level = {row["level"]: row for row in table.iter_rows(named=True) if row["hazard_ratio"] is not None}
    for name, r_name in (("H100", "gpu_typeH100"), ("V100", "gpu_typeV100"), ("per doubling", "log2(nodes)")):
        estimates = [row_by_level[name][column] for column in ("hazard_ratio", "ci_low", "ci_high", "p_value")]
        assert estimates == pytest.approx(r_rows[r_name][0], rel=1e-6)


def test_clustered_standard_errors_of_curves(oracle):
    """Compare jackknife sums by cluster. R does not divide by 1 - h, so this test sets that correction to 1."""
    durations, r_rows = oracle
    counted = CountedDurations(add_levels(durations, {"user": ["user"]}), ["failure", "success", "cancelled"])
    clusters = counted.by_cluster("all")["all"]
    clusters.__dict__["pull"] = np.ones(30)
    ((_, competing),) = iterate_competing_times(counted, counted.events, "all")
    competing = [times.from_zero() for times in competing]
    steps = _kaplan_meier_steps(competing[0])
    influences = Influences(clusters, steps["time_s"])
    survival = influences.accumulate(*_log_survival_parts(steps["at_risk"], steps["events"], 1)).se()
    assert (steps["survival"] * survival)[1:] == pytest.approx(r_rows["robust"][:, 1], rel=1e-9)
    variance = np.cumsum(steps["events"] / steps["at_risk"] ** 2)
    hazard = influences.accumulate([None, 1 / steps["at_risk"]], variance).se()
    assert hazard[1:] == pytest.approx(r_rows["robust"][:, 2], rel=1e-9)
    for curve, r_se in zip(_curves(competing, clusters, [1, 2, 3]), r_rows["robust incidence"], strict=True):
        p, low = curve["incidence"], curve["ci_low_clustered"]
        valid = ~np.isnan(low) & (p > 0)
        estimates = np.log(np.log(low[valid]) / np.log(p[valid])) / clusters.student() * -p[valid] * np.log(p[valid])
        assert estimates == pytest.approx(r_se[valid], rel=1e-8)


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


OUTAGES = """
library(survival)
spells <- read.csv(commandArgs(TRUE)[1])
emit <- function(name, ...) cat(name, sprintf("%.17g", c(...)), "\\n", sep = ",")
fit <- survfit(Surv(from, until, event) ~ 1, data = spells, id = unit, cluster = unit, robust = TRUE)
for (i in which(fit$n.event > 0)) emit("mcf", fit$time[i], fit$n.risk[i], fit$cumhaz[i], fit$std.chaz[i])
emit("repair", quantile(survfit(Surv(spells$down, spells$ended) ~ 1), c(0.5, 0.9))$quantile)
emit("restricted", summary(survfit(Surv(spells$down, spells$ended) ~ 1), rmean = 40)$table["rmean"])
"""


def test_mcf_and_repair_times_of_outages(tmp_path):
    """The mean cumulative function of units that enter and leave, its intervals, and censored repair times."""
    program, draws = rscript(), np.random.default_rng(5)
    entries, exits = draws.integers(0, 40, 30), draws.integers(60, 100, 30)
    events = [np.unique(draws.integers(a + 1, b + 1, draws.poisson(3))) for a, b in zip(entries, exits, strict=True)]
    edges = [np.unique([a, *times, b]) for a, times, b in zip(entries, events, exits, strict=True)]
    rows = [(unit, a, b, int(b in events[unit])) for unit, bounds in enumerate(edges) for a, b in pairwise(bounds)]
    spells = pl.DataFrame(rows, schema=["unit", "from", "until", "event"], orient="row")
    spells = spells.with_columns(down=pl.Series(draws.integers(0, 60, len(rows))), ended=draws.random(len(rows)) < 0.7)
    spells.with_columns(pl.col("ended").cast(pl.Int64)).write_csv(tmp_path / "spells.csv")
    (tmp_path / "oracle.R").write_text(OUTAGES)
    command = [program, "--vanilla", tmp_path / "oracle.R", tmp_path / "spells.csv"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    r_rows = [
        (name, [float(number) for number in numbers if number]) for name, *numbers in csv.reader(io.StringIO(printed))
    ]
    times, units = np.concatenate(events), np.repeat(np.arange(30), [len(bounds) for bounds in events])
    mcf = mean_cumulative(times, units, entries, exits, np.arange(30), 2000)
    se = np.log(mcf["ci_high"] / mcf["mcf"]) / Z_95 * mcf["mcf"]
    estimates = np.column_stack([mcf["time_s"], mcf["at_risk"], mcf["mcf"], se])
    assert estimates == pytest.approx(np.array([numbers for name, numbers in r_rows if name == "mcf"]), rel=1e-9)
    times = repair_times(spells["down"].to_numpy(), spells["ended"].to_numpy())
    assert [times["median_s"], times["p90_s"]] == pytest.approx(dict(r_rows)["repair"])
    truncated = spells.select(pl.col("down").clip(upper_bound=40), ended=pl.col("ended") & (pl.col("down") <= 40))
    restricted = repair_times(truncated["down"].to_numpy(), truncated["ended"].to_numpy())["restricted_mean_s"]
    assert restricted == pytest.approx(dict(r_rows)["restricted"][0])
