"""Hazard ratios of what lives differ in, each with the others held fixed, and whether they are proportional."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from scipy.special import gammaincc, ndtr, stdtr, stdtrit

from ttf.analyses.factors.estimate_hazards import COX, DOUBLING, JOB_SIZE
from ttf.analyses.factors.estimate_hazards.cox import Fit, Lives, NoFit, fit, independent, proportionality
from ttf.analyses.factors.estimate_hazards.cox_clusters import Alike, moves
from ttf.records.jobs import Frame
from ttf.stats.basics.holm import with_holm
from ttf.stats.basics.normal import Z_95
from ttf.stats.basics.order import distinct
from ttf.stats.basics.p_value import never_zero
from ttf.stats.clustered import FEWEST, UNCLUSTERED, Clusters, too_few
from ttf.stats.durations.strata import NO_LIFE

# Columns of lives that are numbers: the ratio is per doubling. All others have one per level.
AMOUNTS = ("gpu_count", "nodes")
MOST_LEVELS = 12
# A level, and the whole fit, needs so many events; rarer levels are taken together.
FEWEST_EVENTS = 10
# An amount blank in more than this share of the lives is no covariate; else the lives without it are excluded.
MOST_BLANK = 0.05

OTHER, NOT_GIVEN = "(other)", "(not given)"
ALL = "all"
DOUBLING_TOGETHER = "per doubling of GPUs and nodes"
SUMMED = "no coefficient of its own: the sum of the two"

TOO_FEW = f"fewer than {FEWEST_EVENTS} events: no fit"
CONSTANT = "always the same"
NEVER_GIVEN = "never given"
COLLINEAR = "collinear with the covariates before it: left out"
# A limit of e^50 is none; the likelihood is flat from some ratio on, though no level alone is without failures.
LARGEST_LOG_RATIO = 50.0
RUNS_OFF = "the failures hardly tell it from the other covariates: the estimate runs off without end"
ARE_CLUSTERS = "its levels are the clusters that intervals go by: left out"
ONE_CLUSTER = "one cluster decides it: no clustered interval"
SEPARATED = "no event: the hazard ratio tends to 0 (separation); it is left out of the fit"


@dataclass
class _Term:
    """A row of the table: a column of the model, or a covariate or level that has none and says why.

    values: Float64 for an amount, truths for a level, None where there is no column. of_one_cluster: whether all lives
    of the level, or of its reference, are of one cluster, whose own part nothing tells from the level's.
    """

    covariate: str
    level: str | None = None
    reference: str | None = None
    values: np.ndarray | None = None
    reasons: list[str] = field(default_factory=list)
    separated: bool = False
    of_one_cluster: bool = False
    cells: dict = field(default_factory=dict)

    def count(self, failed: np.ndarray, number: np.ndarray) -> None:
        """n and events: of the lives at this level, or of all of them."""
        if self.values is not None and self.values.dtype == np.bool_:
            failed, number = failed[self.values], number[self.values]
        self.cells |= {"n": int(number.sum()), "events": int(number[failed].sum())}

    def row(self) -> dict:
        names = {"covariate": self.covariate, "level": self.level, "reference": self.reference}
        return names | {"converged": False, "reason": "; ".join(self.reasons) or None} | self.cells


def hazard_ratios(lives: Frame, event: str, covariates: Sequence[str]) -> pl.DataFrame:
    """A Cox regression (1972; ties: Efron 1977) of the event on all covariates together, a row per coefficient.

    lives: duration_s (Int64 seconds; null is excluded), event (any other, or null, censors) and the covariates'
    columns. Those of AMOUNTS enter as their logarithm to base 2 (level `per doubling`), with a level 0 against 1 where
    some lives have none; the others by level against the reference, the level with the most lives: of MOST_LEVELS or
    more, and of those with fewer than FEWEST_EVENTS events, the rest is `(other)`; a life without a value is `(not
    given)`. A covariate, or level, that cannot be estimated has a row that says why: the same in every life, collinear
    with those before it, no event (separation: its lives are taken out, as in the limit of a ratio of 0).

    n, events: of the level, or of the whole fit (rows of AMOUNTS and of the covariate `all`). hazard_ratio with Wald's
    95% CI and p-value; p_adjusted: Holm over the coefficients. proportionality_*: `cox.proportionality` of the
    covariate's coefficients together, the same on each of its rows; the row `all` has that of the whole model and no
    ratio. Where the fit fails, rows are blank and not converged, with a reason.

    Where several of AMOUNTS are in the model, the row `job_size` is of a job twice as large: the ratio of all of them
    doubled together, exp of the sum of their coefficients, with its Wald interval from their covariance. It is no
    coefficient: neither Holm's adjustment nor the test of proportionality has it.

    The clustered interval and p-value are Wald's too, with the covariance of `cox_clusters.moves` and Student's t with
    the effective clusters less two; where all lives are of one cluster by the groups within. A covariate whose levels
    are the clusters (systems) is left out: how others would differ cannot be told from them, and with it in the model
    what is alike in a cluster (the type of machine) is compared within clusters alone. At .05 the test rejects true
    nulls in .02 to .09 of the time (100 or 20 users of sizes by Zipf's law, log SD 1, levels drawn for each user or
    each job), where the exact one does in .03 to .78. A score test with the other ratios fitted anew would take a fit
    for each ratio.
    Raises ValueError when a covariate has no column or a duration is negative.
    """
    if missing := [name for name in covariates if name not in lives.lazy().collect_schema()]:
        raise ValueError(f"there is no column {missing[0]!r} to explain the hazard by")
    lives = lives.lazy().filter(pl.col("duration_s").is_not_null())
    lives = lives.with_columns(failed=(pl.col("event") == event).fill_null(False))
    amounts = [name for name in covariates if name in AMOUNTS]
    totals = lives.select(
        pl.col(amounts).null_count(), n=pl.len(), events=pl.col("failed").sum(), shortest_s=pl.col("duration_s").min()
    )
    ((*blank, n, events, shortest_s),) = totals.collect(engine="streaming").iter_rows()
    if n and shortest_s < 0:
        raise ValueError("a duration is negative")
    whole = _Term(ALL, cells={"n": n, "events": events})
    if events < FEWEST_EVENTS:
        whole.reasons.append(TOO_FEW if n else NO_LIFE)
        return _table(event, [whole])
    absent = {name: count for name, count in zip(amounts, blank, strict=True) if count > MOST_BLANK * n}
    known = [name for name in amounts if name not in absent]
    lives = lives.drop_nulls(known) if known else lives
    by, cluster = _level_of_clusters(lives)
    levels = {name: _Levels.of(lives, name, cluster) for name in covariates if name not in AMOUNTS}
    divided = {name: of for name, of in levels.items() if not of.reason}
    # Lives alike in all that counts go together; `lives` is how many they are.
    alike = lives.group_by("failed", "duration_s", *known, **{name: of.place for name, of in divided.items()})
    alike = alike.agg(lives=pl.len().cast(pl.Int64)).collect(engine="streaming")
    clusters = _Clusters.of(lives, by, cluster, dict.fromkeys(known) | divided, alike) if cluster else None
    failed, number = alike["failed"].to_numpy(), alike["lives"].to_numpy()
    terms = []
    for name in covariates:
        if name in absent:
            terms.append(_Term(name, DOUBLING, reasons=[f"blank for {absent[name]} units at risk"]))
        else:
            terms += levels[name].terms(alike) if name in levels else _amount(alike, name)
    stay = np.ones(alike.height, dtype=np.bool_)
    for term in terms:
        term.count(failed, number)
        if term.separated:
            stay &= ~term.values
    seconds, failed, number = alike["duration_s"].to_numpy()[stay], failed[stay], number[stay]
    model = [term for term in terms if term.values is not None and not term.separated]
    for term in model:
        term.values = term.values[stay]
    kept = independent([term.values for term in model], number)
    for place, term in enumerate(model):
        term.count(failed, number)
        if place not in kept:
            term.reasons.append(COLLINEAR)
    whole.count(failed, number)
    model = [model[place] for place in kept]
    if not model:
        whole.reasons.append("no factor has two levels: nothing to fit")
    else:
        try:
            risk_sets = Lives(seconds, failed, [term.values for term in model], number)
            clusters = clusters and clusters.known_by(clusters.keys(alike)[stay], model)
            # Nothing that has a value for each life is needed any more.
            for term in terms:
                term.values = None
            del alike, seconds, failed, number, stay
            terms += _estimate(risk_sets, model, whole, clusters)
        except NoFit as no_fit:
            for term in (*model, whole):
                term.reasons.append(str(no_fit))
    return _table(event, [*terms, whole])


def _table(event: str, terms: list[_Term]) -> pl.DataFrame:
    rows = [term.row() | {"event": event} for term in terms]
    for of, adjusted in (("p_value", "p_adjusted"), ("p_clustered", "p_adjusted_clustered")):
        with_holm((row for row in rows if row["covariate"] != JOB_SIZE), of, adjusted)
    return COX.frame(rows)


def _amount(alike: pl.DataFrame, name: str) -> list[_Term]:
    """The columns that an amount gives, or one row without that says why there are none."""
    amount = alike[name].to_numpy()
    if np.ptp(amount) == 0:
        return [_Term(name, DOUBLING, reasons=[CONSTANT])]
    doublings = np.log2(np.maximum(amount, 1))
    terms = [_Term(name, DOUBLING, None, doublings)] if np.ptp(doublings) else []
    return [*terms, _level(name, "0", "1", amount == 0, alike)] if (amount == 0).any() else terms


@dataclass(frozen=True)
class _Levels:
    """A covariate by its levels: those with rows of their own by their labels, the reference first.

    place: of a life, its label's, from 1; 0 for the rarer levels, taken together. reason: why there are no rows.
    of_one_cluster: the labels whose lives are all of one cluster.
    """

    name: str
    labels: list[str]
    rarer: int
    place: pl.Expr
    reason: str | None
    of_one_cluster: frozenset[str]

    @classmethod
    def of(cls, lives: pl.LazyFrame, name: str, cluster: str | None) -> "_Levels":
        """The reference is the largest level that has events enough; lives: with `failed` and the column `cluster`."""
        number = pl.col(cluster) if cluster else pl.lit(None, pl.UInt32)
        ends = {"first": number.min(), "last": number.max()}
        counts = lives.group_by(raw=name).agg(n=pl.len(), events=pl.col("failed").sum(), **ends)
        counts = counts.collect(engine="streaming")
        counts = counts.sort("n", "raw", descending=[True, False], nulls_last=True)
        common = counts.filter(pl.col("events") >= FEWEST_EVENTS).head(MOST_LEVELS)
        rest = counts.join(common, on="raw", how="anti", nulls_equal=True, maintain_order="left")
        # One level alone keeps its name.
        shown = common if rest.height > 1 else pl.concat([common, rest])
        labels = [NOT_GIVEN if raw is None else raw for raw in shown["raw"].cast(pl.String)]
        # To replace each value by its place would hold all lives at once.
        is_raw = (pl.col(name).eq_missing(pl.lit(raw, dtype=shown["raw"].dtype)) for raw in shown["raw"])
        places = (found.cast(pl.UInt8) * place for place, found in enumerate(is_raw, 1))
        place = pl.sum_horizontal(pl.lit(0, dtype=pl.UInt8), *places).cast(pl.UInt8)
        reason = None
        if counts.height < 2:
            reason = CONSTANT if counts["raw"].count() else NEVER_GIVEN
        elif (counts["first"] == counts["last"]).all() and cluster:
            reason = ARE_CLUSTERS
        elif not common.height:
            reason = f"no level has {FEWEST_EVENTS} events or more"
        parts = [(label, shown[at]) for at, label in enumerate(labels)]
        parts += [(OTHER, rest)] if rest.height > 1 else []
        of_one = frozenset(label for label, part in parts if cluster and part["first"].min() == part["last"].max())
        return cls(name, labels, rest.height if rest.height > 1 else 0, place, reason, of_one)

    def terms(self, alike: pl.DataFrame) -> list[_Term]:
        """A column for each level but the reference, or one row without that says why there are none."""
        if self.reason:
            return [_Term(self.name, reasons=[self.reason])]
        place = alike[self.name].to_numpy()
        labels = dict(enumerate(self.labels[1:], 2)) | ({0: OTHER} if self.rarer else {})
        terms = [_level(self.name, label, self.labels[0], place == of, alike) for of, label in labels.items()]
        if self.rarer:
            terms[-1].reasons.insert(0, f"{self.rarer} rarer levels together")
        for term in terms:
            term.of_one_cluster = not self.of_one_cluster.isdisjoint((term.level, term.reference))
        return terms


def _level(name: str, level: str, reference: str, values: np.ndarray, alike: pl.DataFrame) -> _Term:
    separated = not alike["failed"].to_numpy()[values].any()
    return _Term(name, level, reference, values, [SEPARATED] if separated else [], separated)


def _level_of_clusters(lives: pl.LazyFrame) -> tuple[str | None, str | None]:
    """(what the clusters are, their column): cluster, or group where all lives are of one; None without any."""
    if "cluster" not in lives.collect_schema():
        return None, None
    is_one = pl.col("cluster").min() == pl.col("cluster").max()
    names = lives.select(pl.col("cluster_by", "group_by").first(), is_one=is_one).collect(engine="streaming")
    ((by_cluster, by_group, is_one),) = names.iter_rows()
    if by_cluster is None:
        return None, None
    return (by_group, "group") if is_one else (by_cluster, "cluster")


@dataclass(frozen=True)
class _Clusters:
    """What a life is of, as a number for its cluster and one, its key, for all of its covariates together.

    lives: yet to be read; by: what the clusters are; level: cluster or group; widths: of each covariate, amounts as
    they are and others by the places of their levels, one more than its largest number; places: of these. known: the
    keys in the fit, ascending, and columns: what the model has for each.
    """

    lives: pl.LazyFrame
    by: str
    level: str
    widths: Mapping[str, int]
    places: Mapping[str, pl.Expr]
    known: np.ndarray | None = None
    columns: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        lives: pl.LazyFrame,
        by: str | None,
        level: str,
        covariates: Mapping[str, _Levels | None],
        alike: pl.DataFrame,
    ) -> "_Clusters":
        """covariates: with their levels, None for an amount, as columns of `alike` too."""
        widths = {name: int(alike[name].max() or 0) + 1 for name in covariates}
        places = {name: levels.place for name, levels in covariates.items() if levels is not None}
        return cls(lives, by, level, widths, places)

    def keys(self, alike: pl.DataFrame) -> np.ndarray:
        return alike.select(key=self._key({})).to_series().to_numpy()

    def _key(self, places: Mapping[str, pl.Expr]) -> pl.Expr:
        key = pl.lit(0, pl.Int64)
        for name, width in self.widths.items():
            key = key * width + places.get(name, pl.col(name))
        return key.cast(pl.Int64)

    def known_by(self, keys: np.ndarray, model: list[_Term]) -> "_Clusters":
        """keys: of the rows of the model."""
        known = distinct(keys)
        example = np.zeros(known.size, np.int64)
        example[np.searchsorted(known, keys)] = np.arange(keys.size)
        columns = np.stack([term.values[example] for term in model], axis=1).astype(float)
        return replace(self, known=known, columns=columns)

    def moves(self, lives: Lives, found: Fit) -> tuple[float, np.ndarray]:
        """(effective clusters, by how much each moves the coefficients)."""
        read = self.lives.select("failed", "duration_s", cluster=pl.col(self.level), key=self._key(self.places))
        read = read.collect(engine="streaming")
        key = read["key"].to_numpy()
        group = np.searchsorted(self.known, key).astype(np.int32)
        # Lives of a separated level are not in the fit.
        stay = self.known[np.minimum(group, self.known.size - 1)] == key
        del key
        read = read.drop("key")
        if not stay.all():
            read, group = read.filter(pl.Series(stay)), group[stay]
        cluster = read["cluster"].to_numpy()
        members = np.bincount(np.searchsorted(distinct(cluster.astype(np.int64)), cluster)).astype(float)
        effective = float(Clusters(np.zeros(members.size, np.int64), members, 1).effective[0])
        if effective < FEWEST:
            return effective, np.zeros((0, self.columns.shape[1]))
        of = Alike(cluster, group, read["duration_s"].to_numpy(), read["failed"].to_numpy(), self.columns)
        return effective, moves(lives, found, of)


def _estimate(lives: Lives, model: list[_Term], whole: _Term, clusters: _Clusters | None) -> list[_Term]:
    """The fit of the model into its terms, and what concerns all of it into `whole`; back: the term of JOB_SIZE."""
    found = fit(lives)
    effective, moved = (None, None) if clusters is None else clusters.moves(lives, found)
    by = None if clusters is None else clusters.by
    whole.cells |= {"cluster_by": by, "clusters": effective}
    places: dict[str, list[int]] = {}
    for place, term in enumerate(model):
        _put_ratio(term, float(found.coefficients[place]), math.sqrt(found.covariance[place, place]))
        _put_clustered(term, by, effective, moved if moved is None else moved[:, place])
        places.setdefault(term.covariate, []).append(place)
    whole.cells["converged"] = True
    amounts = [place for place, term in enumerate(model) if term.level == DOUBLING]
    total = [_Term(JOB_SIZE, DOUBLING_TOGETHER, reasons=[SUMMED])] if len(amounts) > 1 else []
    for term in total:
        term.cells |= {name: whole.cells[name] for name in ("n", "events")}
        spread = float(found.covariance[np.ix_(amounts, amounts)].sum())
        _put_ratio(term, float(found.coefficients[amounts].sum()), math.sqrt(spread))
        _put_clustered(term, by, effective, moved if moved is None else moved[:, amounts].sum(axis=1))
    everything = list(range(len(model)))
    try:
        *statistics, of_all = proportionality(lives, found, [*places.values(), everything])
    except np.linalg.LinAlgError:
        whole.reasons.append("the events are too few or too close in time for a test of proportionality")
        return total
    for of_one, statistic in zip(places.values(), statistics, strict=True):
        for place in of_one:
            model[place].cells |= _proportionality(statistic, len(of_one))
    whole.cells |= _proportionality(of_all, len(everything))
    return total


def _put_ratio(term: _Term, estimate: float, se: float) -> None:
    if abs(estimate) + Z_95 * se > LARGEST_LOG_RATIO:
        term.reasons.append(RUNS_OFF)
        term.cells["converged"] = False
        return
    p, tiny = never_zero(2 * float(ndtr(-abs(estimate / se))))
    if tiny:
        term.reasons.append(tiny)
    low, high = math.exp(estimate - Z_95 * se), math.exp(estimate + Z_95 * se)
    term.cells |= {"log_hazard_ratio": estimate, "se": se, "hazard_ratio": math.exp(estimate)}
    term.cells |= {"ci_low": low, "ci_high": high, "p_value": p, "converged": True}


def _put_clustered(term: _Term, by: str | None, effective: float | None, moved: np.ndarray | None) -> None:
    """moved: by how much each cluster moves the coefficient; None where there are no clusters."""
    if "log_hazard_ratio" not in term.cells:
        return
    if moved is None:
        term.reasons.append(UNCLUSTERED)
        return
    term.cells |= {"cluster_by": by, "clusters": effective}
    if effective < FEWEST:
        term.reasons.append(too_few(effective, by))
        return
    estimate, se, degrees = term.cells["log_hazard_ratio"], math.sqrt(float((moved**2).sum())), effective - 2
    away = float(stdtrit(degrees, 0.975)) * se
    if term.of_one_cluster or not 0 < abs(estimate) + away < LARGEST_LOG_RATIO or not se:
        term.reasons.append(ONE_CLUSTER)
        return
    p, _ = never_zero(2 * float(stdtr(degrees, -abs(estimate / se))))
    term.cells |= {"ci_low_clustered": math.exp(estimate - away), "ci_high_clustered": math.exp(estimate + away)}
    term.cells["p_clustered"] = p


def _proportionality(statistic: float, df: int) -> dict:
    p, _ = never_zero(float(gammaincc(df / 2, statistic / 2)))
    return {"proportionality_statistic": statistic, "proportionality_df": df, "proportionality_p": p}
