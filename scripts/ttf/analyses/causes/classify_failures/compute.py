"""Reasons of failed attempts, and the most common records of attempts that no rule matches."""

from collections.abc import Iterator

import polars as pl

from ttf.analyses.causes.classify_failures import (
    FAILURE_KINDS,
    LOG_TAILS,
    REASONS,
    TAXONOMY,
    TAXONOMY_SUMMARY,
    UNMATCHED,
)
from ttf.analyses.causes.classify_failures.log_tails import LONGEST_LINE, match_tails, normalise_line, read_tails
from ttf.analyses.causes.classify_failures.reason_rules import (
    ATTEMPT_COLUMNS,
    JOB_COLUMNS,
    KEY,
    PARENT_JOB_COLUMNS,
    RAW_COLUMNS,
    classify,
    list_attempts,
    searched_characters,
)
from ttf.analyses.causes.judge_node_errors import ERROR_ATTRIBUTIONS
from ttf.engine.storage.tables import BLOCK_ROWS, read_blocks_with_attempts
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.records.jobs import join_reasons

# Reason of attempts that no rule matches.
NO_RULE = "unmatched"
# Name of the reason in config/taxonomy.yaml.
TIME_LIMIT = "Time limit"
# Reasons of attempts that only a health check or the log of one of their nodes explains.
HEALTH_EVENT, NODE_ERROR, GPU_ERROR = "Failed health check", "Error in a node's log", "GPU error of an application"
INFRA_DOMAIN = "system software or hardware"
# Source -> reason and domain.
_OBSERVED = {
    "event": (HEALTH_EVENT, INFRA_DOMAIN),
    "node_log": (NODE_ERROR, INFRA_DOMAIN),
    "application": (GPU_ERROR, "user program or hardware"),
}
MOST_LINES = 100
# Blank if no user is known.
_N_USERS = pl.when(pl.col("user").count() > 0).then(pl.col("user").drop_nulls().n_unique()).cast(pl.Int64)


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    classified, matches, lines = (
        _classify_with_logs(inputs) if "tails" in inputs else (classify_blocks(inputs), None, LOG_TAILS.frame([]))
    )
    if "durations_infra" in inputs:
        columns = ["unit_id", "duration_id", "event", "basis", "attempt_id", "cause"]
        errors = inputs.read("error_attributions") if "error_attributions" in inputs else None
        classified = with_health_events(classified, inputs.scan("durations_infra", columns), errors)
    table = taxonomy_table(classified)
    return {
        "reasons": classified.select(*REASONS.columns),
        "taxonomy": table,
        "failure_kinds": failure_kinds(table),
        "taxonomy_summary": summarise_taxonomy(table, lines),
        "unmatched": unmatched_table(classified, matches),
        "log_tails": lines,
    }


def _classify_with_logs(inputs: Inputs) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return (classified failed attempts, matches and LOG_TAILS as from `match_tails`)."""
    taxonomy = inputs.settings.taxonomy
    attempts = pl.concat(_read_attempts(inputs))
    matches, lines = match_tails(read_tails(inputs.path("tails"), searched_characters(taxonomy)), attempts, taxonomy)
    return classify(attempts.filter("failed"), taxonomy, matches), matches, lines


def classify_blocks(inputs: Inputs, size: int = BLOCK_ROWS) -> pl.DataFrame:
    """Classify the failed attempts, `size` jobs at a time."""
    taxonomy, blocks = inputs.settings.taxonomy, _read_attempts(inputs, size, pl.col("failed"))
    return pl.concat([classify(rows, taxonomy) for rows in blocks])


def _read_attempts(inputs: Inputs, n_jobs: int = BLOCK_ROWS, chosen: pl.Expr | bool = True) -> Iterator[pl.DataFrame]:
    """Yield the attempts of `n_jobs` jobs at a time, as from `list_attempts`; chosen: filter by is_last and failed."""
    attempts = inputs.scan("attempts", RAW_COLUMNS) if "attempts" in inputs else None
    jobs = inputs.scan("jobs", JOB_COLUMNS if attempts is None else PARENT_JOB_COLUMNS)
    return (list_attempts(*block, chosen) for block in read_blocks_with_attempts(jobs, attempts, n_jobs))


def with_health_events(
    classified: pl.DataFrame, durations: pl.LazyFrame, errors: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Set a reason of `_OBSERVED` where a health event or the log of a node explains a failed attempt and no rule does.

    durations: from `ttf.records.infra.infra_durations`, so that every analysis attributes the same attempts to
    infrastructure. errors: ERROR_ATTRIBUTIONS; the error of an application counts only where no rule matches.
    """
    is_infra = (pl.col("event") == EVENT) & (pl.col("basis") == "event")
    codes = ERROR_ATTRIBUTIONS.frame([]) if errors is None else errors
    durations = durations.join(codes.lazy().select("attempt_id", "code", "application"), on="attempt_id", how="left")
    source = (
        pl.when(is_infra & (pl.col("cause") == pl.col("code")))
        .then(pl.lit("node_log"))
        .when(is_infra)
        .then(pl.lit("event"))
        .when("application")
        .then(pl.lit("application"))
    )
    columns = durations.select(job_id="unit_id", attempt="duration_id", source=source).drop_nulls("source")
    sources = columns.collect(engine="streaming")
    if sources.is_empty():
        return classified
    rows = classified.join(sources, on=["job_id", "attempt"], how="left", maintain_order="left")
    kinds = [failure_kind(*row) for row in classified.select(pl.col("reason").fill_null(NO_RULE), "domain").iter_rows()]
    is_application, is_other = pl.col("source") == "application", pl.Series(kinds, dtype=pl.String) != "infra"
    is_unexplained = pl.when(is_application).then(pl.col("reason").is_null()).otherwise(is_other)
    is_changed = pl.col("source").is_not_null() & is_unexplained
    names, domains = ({kind: row[index] for kind, row in _OBSERVED.items()} for index in (0, 1))
    cells = {
        "reason": pl.col("source").replace_strict(names),
        "domain": pl.col("source").replace_strict(domains),
        "category": pl.lit(None, pl.String),
        "deterministic": pl.when(~is_application).then(pl.lit(False)),
        "evidence": pl.when(is_application).then(pl.lit("node_log")).otherwise("source"),
    }
    updates = {name: pl.when(is_changed).then(value).otherwise(name) for name, value in cells.items()}
    return rows.with_columns(**updates).drop("source")


def taxonomy_table(classified: pl.DataFrame) -> pl.DataFrame:
    """Build TAXONOMY, with the columns of Philly's Table 7 (Jeon et al., ATC'19): a row per group of failed attempts.

    by: `reason`, the most frequent first and `unmatched` last; `domain`, each set of domains apart, so that the rows
    add up; `evidence`; `deterministic`; `all`. RTF x demand is summed in whole milli-GPU seconds. GPU demand: whole
    GPUs of the attempt, rounded up.
    """
    rows = classified.with_row_index("unit").with_columns(
        gpus=((pl.col("gpu_milli") + 999) // 1000).fill_null(0),
        product=pl.col("gpu_milli").cast(pl.Int128) * pl.col("runtime_s"),
        # Counting distinct numbers is faster than counting texts.
        unit=pl.col("unit").first().over("job_id", "task"),
    )
    aggregates = [
        pl.len().cast(pl.Int64).alias("trials"),
        pl.col("unit").n_unique().cast(pl.Int64).alias("jobs"),
        _N_USERS.alias("users"),
        pl.col("runtime_s").count().cast(pl.Int64).alias("n"),
        *(pl.col("runtime_s").quantile(q / 100, "linear").alias(f"rtf_p{q}_s") for q in (50, 90, 95)),
        pl.when(pl.col("runtime_s").count() > 0).then(pl.col("runtime_s").sum()).alias("rtf_total_s"),
        (pl.col("gpus") == 0).sum().cast(pl.Int64).alias("gpu_none"),
        (pl.col("gpus") == 1).sum().cast(pl.Int64).alias("gpu_1"),
        pl.col("gpus").is_between(2, 4).sum().cast(pl.Int64).alias("gpu_2_4"),
        (pl.col("gpus") > 4).sum().cast(pl.Int64).alias("gpu_gt4"),
        pl.when(pl.col("product").count() > 0).then(pl.col("product").sum()).alias("product"),
    ]
    reason_keys = ["reason", "domain", "category", "deterministic"]
    groups = {"reason": reason_keys} | {name: [name] for name in ("domain", "evidence", "deterministic")}
    parts = [
        rows.group_by(keys, maintain_order=True)
        .agg(aggregates)
        .sort(pl.col(keys[0]).is_null(), pl.col("trials").neg(), *keys)
        .with_columns(pl.lit(by).alias("by"))
        for by, keys in groups.items()
    ]
    parts.append(rows.select(aggregates).filter(pl.col("trials") > 0).with_columns(pl.lit("all").alias("by")))
    table = pl.concat(parts, how="diagonal")
    totals = parts[-1].select("trials", "rtf_total_s", "product").row(0, named=True) if rows.height else {}
    is_unmatched = pl.coalesce(pl.when(pl.col("by") == by).then(pl.col(by).is_null()) for by in groups)
    notes = {
        "no rule matches": is_unmatched,
        "no user is known": pl.col("users").is_null(),
        "no run time is known": pl.col("rtf_total_s").is_null(),
        "no GPU demand is known": pl.col("product").is_null() & pl.col("rtf_total_s").is_not_null(),
    }
    table = table.with_columns(
        _divide(table["trials"], totals.get("trials")).alias("trials_share"),
        _divide(table["rtf_total_s"], totals.get("rtf_total_s")).alias("rtf_total_share"),
        _divide(table["product"], totals.get("product")).alias("rtf_x_demand_share"),
        pl.when(pl.col("by") == "reason").then(pl.col("reason").fill_null(NO_RULE)).alias("reason"),
        note=join_reasons(notes),
    )
    return TAXONOMY.conform(table)


def failure_kinds(taxonomy: pl.DataFrame) -> pl.DataFrame:
    """Count failed attempts and their share of GPU time by kind (limit, infra, other, none); return FAILURE_KINDS."""
    reasons, rows, time_column = taxonomy.filter(by="reason"), [], "rtf_x_demand_share"
    kinds = [failure_kind(*row) for row in reasons.select("reason", "domain").iter_rows()]
    n, has_time = int(reasons["trials"].sum()), reasons[time_column].count() > 0
    groups = reasons.with_columns(kind=pl.Series(kinds, dtype=pl.String)).group_by("kind", maintain_order=True)
    for (kind,), part in groups:
        trials = int(part["trials"].sum())
        row = {"kind": kind, "trials": trials, "n": n, "trials_share": trials / n}
        rows.append(row | {"gpu_share": part[time_column].sum() if has_time else None})
    return FAILURE_KINDS.frame(rows)


def summarise_taxonomy(taxonomy: pl.DataFrame, tails: pl.DataFrame) -> pl.DataFrame:
    """Summarise TAXONOMY and LOG_TAILS as the one row of TAXONOMY_SUMMARY."""
    trials, lines = int(taxonomy.filter(by="all")["trials"].sum()), tails.filter(code="lines")["rows"]
    matched = int(taxonomy.filter(pl.col("domain").is_not_null(), by="reason")["trials"].sum())
    row: dict[str, object] = {"trials": trials, "matched": matched}
    if trials:
        row |= {"matched_share": matched / trials, "unmatched_share": (trials - matched) / trials}
    if lines.len():
        row |= {"lines": lines.item(), "wrong_lines": tails.filter(severity="error")["rows"].sum()}
    return TAXONOMY_SUMMARY.frame([row])


def failure_kind(reason: str, domain: str | None) -> str:
    """Return the kind of a reason: limit, infra (cause in system software or hardware alone), none or other."""
    if reason == NO_RULE or domain is None:
        return "none"
    return "limit" if reason == TIME_LIMIT else "other" if "user program" in domain else "infra"


def _divide(values: pl.Series, divisor: int | None) -> pl.Series:
    """Divide whole numbers by another, rounded once; blank without a divisor.

    Polars would multiply by the reciprocal, so that 3 of 5 is not 0.6.
    """
    quotients = [value / divisor if divisor and value is not None else None for value in values]
    return pl.Series(quotients, dtype=pl.Float64)


def unmatched_table(classified: pl.DataFrame, log_matches: pl.DataFrame | None = None) -> pl.DataFrame:
    """Count the records of failed attempts that no rule matches, the most common first, at most MOST_LINES rows.

    source `log`: the most informative line of the log, normalised; `record`: state, exit code and reason.
    """
    unmatched = classified.filter(pl.col("reason").is_null())
    schema = {name: ATTEMPT_COLUMNS[name] for name in KEY} | {"shown": pl.String}
    logs = pl.DataFrame(schema=schema) if log_matches is None else log_matches.select(*schema).drop_nulls("shown")
    record = pl.concat_str(
        pl.format("state {}", "state"),
        pl.format("exit code {}", "exit_code"),
        pl.format("reason {}", normalise_line("failure_reason")),
        separator=", ",
        ignore_nulls=True,
    )
    rows = unmatched.with_columns(record=pl.when(record != "").then(record.str.head(LONGEST_LINE))).join(
        logs.unique(maintain_order=True), on=KEY, how="left", nulls_equal=True, maintain_order="left"
    )
    table = (
        rows.select(
            "attempt",
            "user",
            unit=pl.struct("job_id", "task"),
            source=pl.when(pl.col("shown").is_null()).then(pl.lit("record")).otherwise(pl.lit("log")),
            line=pl.coalesce("shown", "record", pl.lit("nothing is known")),
        )
        .group_by("source", "line", maintain_order=True)
        .agg(
            trials=pl.struct("unit", "attempt").n_unique().cast(pl.Int64),
            jobs=pl.col("unit").n_unique().cast(pl.Int64),
            users=_N_USERS,
        )
        .sort(pl.col("trials").neg(), "source", "line")
        .head(MOST_LINES)
    )
    return UNMATCHED.conform(table.with_columns(trials_share=_divide(table["trials"], unmatched.height)))
