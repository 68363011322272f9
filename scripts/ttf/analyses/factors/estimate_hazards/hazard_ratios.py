"""Hazard ratios of covariates, each adjusted for the others, and tests of their proportionality."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from scipy.special import gammaincc, ndtr

from ttf.analyses.factors.estimate_hazards import COX, DOUBLING, JOB_SIZE
from ttf.records.clusters import first_block, level_names
from ttf.records.jobs import Frame
from ttf.stats.basics.holm import add_adjusted_p
from ttf.stats.basics.normal import Z_95
from ttf.stats.basics.order import example_rows, number_rows
from ttf.stats.basics.p_value import raise_to_smallest
from ttf.stats.clustered import FEWEST, UNCLUSTERED, Clusters, name_levels, too_few_reason
from ttf.stats.durations.clustered_durations import make_cells
from ttf.stats.durations.cox import Fit, NoFit, RiskSets, fit, independent_columns, proportionality_statistics
from ttf.stats.durations.cox_clusters import ClusteredDurations, Effects, effects_by_cluster
from ttf.stats.durations.strata import NO_DURATION

# Numeric covariates, with a ratio per doubling. All others have a ratio per level.
AMOUNTS = ("gpu_count", "nodes")
MOST_LEVELS = 12
# Minimum number of events of a level and of the fit; levels with fewer are merged.
FEWEST_EVENTS = 10
# An amount that is blank for more than this share of durations is no covariate; else these durations are excluded.
MOST_BLANK = 0.05

OTHER, NOT_GIVEN = "(other)", "(not given)"
ALL = "all"
DOUBLING_TOGETHER = "per doubling of GPUs and nodes"
SUMMED = "no coefficient of its own: the sum of the two"

TOO_FEW = f"fewer than {FEWEST_EVENTS} events: no fit"
CONSTANT = "always the same"
NEVER_GIVEN = "never given"
COLLINEAR = "collinear with the covariates before it: left out"
# Larger estimates count as infinite: the likelihood is flat beyond some ratio although each level has failures.
LARGEST_LOG_RATIO = 50.0
RUNS_OFF = "the failures hardly tell it from the other covariates: the estimate runs off without end"
ARE_CLUSTERS = "its levels are the clusters that intervals go by: left out"
ONE_CLUSTER = "one cluster decides it: no clustered interval"
SEPARATED = "no event: the hazard ratio tends to 0 (separation); it is left out of the fit"

# The cells of clusters and weeks, what they are, and their effects on the coefficients; None with too few clusters.
_ClusterEffects = tuple[Clusters, str, Effects | None]


@dataclass
class _Term:
    """A row of the table: a column of the model, or a covariate or level without a column, with the reason.

    values: Float64 for an amount, Boolean for a level, empty without a column. is_one_cluster: whether all durations of
    the level, or of its reference, are of one cluster, so that their effects cannot be separated.
    """

    covariate: str
    level: str | None = None
    reference: str | None = None
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    reasons: list[str] = field(default_factory=list)
    is_separated: bool = False
    is_one_cluster: bool = False
    cells: dict = field(default_factory=dict)

    def count_events(self, events: np.ndarray, durations: np.ndarray) -> None:
        """Set n and events of this level, or of all rows for an amount. events, durations: numbers in each row."""
        is_level = self.values if self.values.dtype == np.bool_ else slice(None)
        self.cells |= {"n": int(durations[is_level].sum()), "events": int(events[is_level].sum())}

    def row(self) -> dict:
        """Return the term as a row of COX."""
        names = {"covariate": self.covariate, "level": self.level, "reference": self.reference}
        return names | {"converged": False, "reason": "; ".join(self.reasons) or None} | self.cells


def hazard_ratios(durations: Frame, event: str, covariates: Sequence[str]) -> pl.DataFrame:
    """Fit a Cox regression (1972, ties by Efron 1977) of the event on all covariates together, a row per coefficient.

    durations: duration_s (Int64 seconds; null is excluded), event (any other value, or null, censors), and the columns
    of the covariates. event: value of the column event. covariates: those of AMOUNTS enter as their logarithm to base 2
    (level `per doubling`), with a level 0 against 1 if some durations have 0. The others enter by level against the
    reference, the level with the most durations. Levels beyond MOST_LEVELS, and those with fewer than FEWEST_EVENTS
    events, form `(other)`; a blank value is `(not given)`.

    Returns COX. A covariate or level that cannot be estimated has a row with the reason: it is constant, collinear with
    those before it, or without events (separation: its durations are excluded, the limit of a ratio of 0). n and events
    are those of the level, or of the whole fit for AMOUNTS and for the covariate `all`. hazard_ratio has Wald's 95% CI
    and p-value; p_adjusted is Holm's over the coefficients. proportionality_* is the test of all coefficients of the
    covariate, the same on each of its rows; the row `all` has that of the whole model and no ratio. If the fit fails,
    rows are blank and not converged, with a reason.
    Raises ValueError if a covariate has no column or a duration is negative.

    If the model has several of AMOUNTS, the row `job_size` is the ratio of all of them doubled together: exp of the sum
    of their coefficients, with its Wald interval from their covariance. It is no coefficient, so Holm's adjustment and
    the test of proportionality exclude it.

    The clustered interval and p-value are Wald's, with the covariance of `effects_by_cluster`, the variance
    that different clusters share in time (`ttf.stats.clustered`), and Student's t with the effective clusters less two.
    If all durations are of one cluster, its groups are the clusters. A covariate whose levels are the clusters
    (systems) is excluded: they do not show how further clusters would differ, and with it in the model, properties of a
    whole cluster (the type of machine) are compared within clusters only. At .05 the test
    rejects true nulls in .02 to .09 of simulations (100 or 20 users of sizes by Zipf's law, log SD 1, levels drawn for
    each user or each job); the exact test rejects in .03 to .78. A score test would need a fit for each ratio.
    """
    if missing := [name for name in covariates if name not in durations.lazy().collect_schema()]:
        raise ValueError(f"there is no column {missing[0]!r} to explain the hazard by")
    timed = durations.lazy().filter(pl.col("duration_s").is_not_null())
    timed = timed.with_columns(failed=(pl.col("event") == event).fill_null(False))
    amounts = [name for name in covariates if name in AMOUNTS]
    totals = timed.select(
        pl.col(amounts).null_count(), n=pl.len(), events=pl.col("failed").sum(), shortest_s=pl.col("duration_s").min()
    )
    ((*blank_counts, n, events, shortest_s),) = totals.collect(engine="streaming").iter_rows()
    if n and shortest_s < 0:
        raise ValueError("a duration is negative")
    model_term = _Term(ALL, cells={"n": n, "events": events})
    if events < FEWEST_EVENTS:
        model_term.reasons.append(TOO_FEW if n else NO_DURATION)
        return _build_cox_table(event, [model_term])
    mostly_blank = {name: count for name, count in zip(amounts, blank_counts, strict=True) if count > MOST_BLANK * n}
    known_amounts: list[str] = [name for name in amounts if name not in mostly_blank]
    timed = timed.drop_nulls(known_amounts) if known_amounts else timed
    cluster_by, cluster, block_by = _cluster_level(timed)
    levels = {name: _Levels.from_durations(timed, name, cluster) for name in covariates if name not in AMOUNTS}
    factors: dict[str, _Levels] = {name: factor for name, factor in levels.items() if not factor.reason}
    indices = [factor.index.alias(name) for name, factor in factors.items()]
    columns = {"cluster": pl.col(cluster) if cluster else pl.lit(0), "block": first_block(block_by)}
    rows = timed.select("failed", "duration_s", *known_amounts, *indices, **columns).collect(engine="streaming")
    seconds, failed = rows["duration_s"].to_numpy(), rows["failed"].to_numpy()
    # Terms have a value for each combination of covariates, of which there are far fewer than durations.
    names = [*known_amounts, *factors]
    combination = number_rows(np.zeros(rows.height, np.int64), *(rows[name].to_numpy() for name in names))
    combinations = rows[example_rows(combination)]
    n_by_row, events_by_row = np.bincount(combination), np.bincount(combination[failed], minlength=combinations.height)
    terms: list[_Term] = []
    for name in covariates:
        if name in mostly_blank:
            terms.append(_Term(name, DOUBLING, reasons=[f"blank for {mostly_blank[name]} units at risk"]))
        elif name in levels:
            terms += levels[name].make_terms(combinations, events_by_row)
        else:
            terms += _make_amount_terms(combinations[name].to_numpy(), name, events_by_row)
    is_in_fit = np.ones(combinations.height, dtype=np.bool_)
    for term in terms:
        term.count_events(events_by_row, n_by_row)
        if term.is_separated:
            is_in_fit &= ~term.values
    events_by_row, n_by_row = events_by_row[is_in_fit], n_by_row[is_in_fit]
    model: list[_Term] = [term for term in terms if term.values.size and not term.is_separated]
    for term in model:
        term.values = term.values[is_in_fit]
    column_indices = independent_columns([term.values for term in model], n_by_row)
    for index, term in enumerate(model):
        term.count_events(events_by_row, n_by_row)
        if index not in column_indices:
            term.reasons.append(COLLINEAR)
    model_term.count_events(events_by_row, n_by_row)
    model = [model[index] for index in column_indices]
    if not model:
        model_term.reasons.append("no factor has two levels: nothing to fit")
    else:
        # Durations of a separated level are not in the fit.
        fitted = np.flatnonzero(is_in_fit[combination])
        group = (np.cumsum(is_in_fit) - 1)[combination[fitted]].astype(np.int32)
        cluster_numbers, blocks = (rows[name].to_numpy()[fitted] for name in columns)
        design = np.stack([term.values for term in model], axis=1).astype(float)
        durations_in_fit = ClusteredDurations(cluster_numbers, blocks, group, seconds[fitted], failed[fitted], design)
        del rows, seconds, failed, combination, fitted
        try:
            terms += _fit_terms(durations_in_fit, model, model_term, cluster_by, block_by)
        except NoFit as no_fit:
            for term in (*model, model_term):
                term.reasons.append(str(no_fit))
    return _build_cox_table(event, [*terms, model_term])


def _build_cox_table(event: str, terms: list[_Term]) -> pl.DataFrame:
    rows = [term.row() | {"event": event} for term in terms]
    for p_column, adjusted_column in (("p_value", "p_adjusted"), ("p_clustered", "p_adjusted_clustered")):
        add_adjusted_p((row for row in rows if row["covariate"] != JOB_SIZE), p_column, adjusted_column)
    return COX.frame(rows)


def _make_amount_terms(amount: np.ndarray, name: str, events: np.ndarray) -> list[_Term]:
    """Return the terms of an amount: per doubling and, if some rows have 0, the level 0 against 1."""
    if np.ptp(amount) == 0:
        return [_Term(name, DOUBLING, reasons=[CONSTANT])]
    doublings = np.log2(np.maximum(amount, 1))
    terms = [_Term(name, DOUBLING, None, doublings)] if np.ptp(doublings) else []
    return [*terms, _make_level_term(name, "0", "1", amount == 0, events)] if (amount == 0).any() else terms


@dataclass(frozen=True)
class _Levels:
    """The levels of a covariate.

    labels: of levels with a row each, the reference first. n_rare: number of levels merged into `(other)`. index: of a
    duration's label, from 1; 0 if merged. reason: why there are no rows. one_cluster_labels: labels whose durations are
    all of one cluster.
    """

    name: str
    labels: list[str]
    n_rare: int
    index: pl.Expr
    reason: str | None
    one_cluster_labels: frozenset[str]

    @classmethod
    def from_durations(cls, durations: pl.LazyFrame, name: str, cluster: str) -> "_Levels":
        """Find the levels of a covariate. durations: with `failed`; cluster: column of the clusters, blank without."""
        cluster_number = pl.col(cluster) if cluster else pl.lit(None, pl.UInt32)
        cluster_range = {"first": cluster_number.min(), "last": cluster_number.max()}
        sums = durations.group_by(raw=name).agg(n=pl.len(), events=pl.col("failed").sum(), **cluster_range)
        counts = sums.collect(engine="streaming").sort("n", "raw", descending=[True, False], nulls_last=True)
        common = counts.filter(pl.col("events") >= FEWEST_EVENTS).head(MOST_LEVELS)
        rare = counts.join(common, on="raw", how="anti", nulls_equal=True, maintain_order="left")
        # A single rare level keeps its name.
        shown_levels = common if rare.height > 1 else pl.concat([common, rare])
        labels = [NOT_GIVEN if raw is None else raw for raw in shown_levels["raw"].cast(pl.String)]
        numbers = pl.Series(range(1, len(labels) + 1), dtype=pl.UInt8)
        index = pl.col(name).replace_strict(shown_levels["raw"], numbers, default=0, return_dtype=pl.UInt8)
        reason: str | None = None
        if counts.height < 2:
            reason = CONSTANT if counts["raw"].count() else NEVER_GIVEN
        elif (counts["first"] == counts["last"]).all() and cluster:
            reason = ARE_CLUSTERS
        elif not common.height:
            reason = f"no level has {FEWEST_EVENTS} events or more"
        rows_by_label = [(label, shown_levels[row]) for row, label in enumerate(labels)]
        rows_by_label += [(OTHER, rare)] if rare.height > 1 else []
        is_one = {label: cluster and rows["first"].min() == rows["last"].max() for label, rows in rows_by_label}
        one_cluster = frozenset(filter(is_one.get, is_one))
        return cls(name, labels, rare.height if rare.height > 1 else 0, index, reason, one_cluster)

    def make_terms(self, rows: pl.DataFrame, events: np.ndarray) -> list[_Term]:
        """Return a term for each level but the reference, or one term without a column that gives the reason."""
        if self.reason:
            return [_Term(self.name, reasons=[self.reason])]
        index = rows[self.name].to_numpy()
        labels = dict(enumerate(self.labels[1:], 2)) | ({0: OTHER} if self.n_rare else {})
        terms = [_make_level_term(self.name, label, self.labels[0], index == i, events) for i, label in labels.items()]
        if self.n_rare:
            terms[-1].reasons.insert(0, f"{self.n_rare} rarer levels together")
        for term in terms:
            term.is_one_cluster = not self.one_cluster_labels.isdisjoint((term.level, term.reference))
        return terms


def _make_level_term(name: str, level: str, reference: str, values: np.ndarray, events: np.ndarray) -> _Term:
    is_separated = not events[values].any()
    return _Term(name, level, reference, values, [SEPARATED] if is_separated else [], is_separated)


def _cluster_level(durations: pl.LazyFrame) -> tuple[str, str, str | None]:
    """Return what the clusters are, their column (cluster, or group if all are of one cluster) and what blocks are."""
    by_cluster, by_group, by_block = level_names(durations)
    if by_cluster is None:
        return "", "", None
    is_one_cluster = pl.col("cluster").min() == pl.col("cluster").max()
    is_one = durations.select(is_one_cluster).collect(engine="streaming").item()
    return (by_group or by_cluster, "group", by_block) if is_one else (by_cluster, "cluster", by_block)


def _cluster_effects(
    durations: ClusteredDurations,
    risk_sets: RiskSets,
    estimate: Fit,
    contrasts: np.ndarray,
    cluster_by: str,
    block_by: str | None,
) -> _ClusterEffects:
    """Return the cells and their effects on the sums of coefficients: see `effects_by_cluster`."""
    _, cells = make_cells(durations.cluster, durations.week, np.ones(durations.cluster.size))
    is_enough = cells.effective[0] >= FEWEST
    effects = effects_by_cluster(risk_sets, estimate, durations, contrasts) if is_enough else None
    return cells, name_levels(cluster_by, block_by, cells), effects


def _fit_terms(
    durations: ClusteredDurations, model: list[_Term], model_term: _Term, cluster_by: str, block_by: str | None
) -> list[_Term]:
    """Fit the model, set the cells of its terms and of the whole model, and return the term of JOB_SIZE, if any.

    cluster_by: kind of clusters, blank without.
    """
    risk_sets = RiskSets(durations.seconds, durations.failed, [term.values for term in model], group=durations.group)
    estimate = fit(risk_sets)
    amount_indices = [index for index, term in enumerate(model) if term.level == DOUBLING]
    size_terms = [_Term(JOB_SIZE, DOUBLING_TOGETHER, reasons=[SUMMED])] if len(amount_indices) > 1 else []
    contrasts = np.eye(len(model))
    if size_terms:
        contrasts = np.vstack([contrasts, contrasts[amount_indices].sum(axis=0)])
        size_terms[0].cells |= {name: model_term.cells[name] for name in ("n", "events")}
    effects = None
    if cluster_by:
        effects = _cluster_effects(durations, risk_sets, estimate, contrasts, cluster_by, block_by)
        model_term.cells |= {"cluster_by": effects[1], "clusters": float(effects[0].effective[0])}
    for index, (term, contrast) in enumerate(zip([*model, *size_terms], contrasts, strict=True)):
        se = math.sqrt(contrast @ estimate.covariance @ contrast)
        _set_ratio_cells(term, float(contrast @ estimate.coefficients), se)
        _set_clustered_interval(term, effects, index)
    model_term.cells["converged"] = True
    indices_by_covariate: dict[str, list[int]] = {}
    for index, term in enumerate(model):
        indices_by_covariate.setdefault(term.covariate, []).append(index)
    all_indices = list(range(len(model)))
    try:
        groups = [*indices_by_covariate.values(), all_indices]
        *statistics, model_statistic = proportionality_statistics(risk_sets, estimate, groups)
    except np.linalg.LinAlgError:
        model_term.reasons.append("the events are too few or too close in time for a test of proportionality")
        return size_terms
    for indices, statistic in zip(indices_by_covariate.values(), statistics, strict=True):
        for index in indices:
            model[index].cells |= _proportionality_cells(statistic, len(indices))
    model_term.cells |= _proportionality_cells(model_statistic, len(all_indices))
    return size_terms


def _set_ratio_cells(term: _Term, log_ratio: float, se: float) -> None:
    if abs(log_ratio) + Z_95 * se > LARGEST_LOG_RATIO:
        term.reasons.append(RUNS_OFF)
        term.cells["converged"] = False
        return
    p, reason = raise_to_smallest(2 * float(ndtr(-abs(log_ratio / se))))
    if reason:
        term.reasons.append(reason)
    low, high = math.exp(log_ratio - Z_95 * se), math.exp(log_ratio + Z_95 * se)
    term.cells |= {"log_hazard_ratio": log_ratio, "se": se, "hazard_ratio": math.exp(log_ratio)}
    term.cells |= {"ci_low": low, "ci_high": high, "p_value": p, "converged": True}


def _set_clustered_interval(term: _Term, effects: _ClusterEffects | None, index: int) -> None:
    """Set the interval of a coefficient or sum of them. effects: None without clusters; index: its column of these."""
    if "log_hazard_ratio" not in term.cells:
        return
    if effects is None:
        term.reasons.append(UNCLUSTERED)
        return
    cells, cluster_by, by_cluster = effects
    effective = float(cells.effective[0])
    term.cells |= {"cluster_by": cluster_by, "clusters": effective}
    if by_cluster is None:
        term.reasons.append(too_few_reason(effective, cluster_by))
        return
    variance, degrees = (by_cluster.change[:, index] ** 2).sum(keepdims=True), np.array([effective - 2])
    spread = cells.add_shared_variance(variance, degrees, by_cluster.influence[:, index], by_cluster.leverage[:, index])
    estimate, half_width = term.cells["log_hazard_ratio"], float(spread.half_width(0.95)[0])
    if term.is_one_cluster or not 0 < abs(estimate) + half_width < LARGEST_LOG_RATIO or np.isnan(half_width):
        term.reasons.append(ONE_CLUSTER)
        return
    p, _ = raise_to_smallest(float(spread.p_value(estimate)[0]))
    low, high = math.exp(estimate - half_width), math.exp(estimate + half_width)
    term.cells |= {"ci_low_clustered": low, "ci_high_clustered": high, "p_clustered": p}


def _proportionality_cells(statistic: float, df: int) -> dict:
    p, _ = raise_to_smallest(float(gammaincc(df / 2, statistic / 2)))
    return {"proportionality_statistic": statistic, "proportionality_df": df, "proportionality_p": p}
