"""Reasons of failed attempts, and what is known of those that no rule matches."""

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
from ttf.analyses.causes.classify_failures.log_tails import LONGEST_LINE, in_tails, normalised, read_tails
from ttf.analyses.causes.classify_failures.reason_rules import (
    ATTEMPT_COLUMNS,
    KEY,
    OF_ATTEMPTS,
    OF_JOBS,
    OF_TRIED_JOBS,
    classify,
    every_attempt,
    most_characters,
)
from ttf.engine.storage.tables import BLOCK_ROWS, blocks_with_attempts
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.records.jobs import join_reasons

# In place of a reason.
NO_RULE = "unmatched"
# As config/taxonomy.yaml names it.
TIME_LIMIT = "Time limit"
# Of attempts that no rule attributes to infrastructure, but a health check on one of their nodes does.
HEALTH_EVENT, OF_INFRASTRUCTURE = "Failed health check", "system software or hardware"
MOST_LINES = 100


def compute(given: Inputs) -> dict:
    classified, of_logs, lines = _with_logs(given) if "tails" in given else (by_block(given), None, LOG_TAILS.frame([]))
    if "lives_infra" in given:
        classified = with_health_events(classified, given.scan("lives_infra", ["unit_id", "life_id", "event", "basis"]))
    table = taxonomy_table(classified)
    return {
        "reasons": classified.select(*REASONS.columns),
        "taxonomy": table,
        "failure_kinds": failure_kinds(table),
        "taxonomy_summary": summarise_taxonomy(table, lines),
        "unmatched": unmatched_table(classified, of_logs),
        "log_tails": lines,
    }


def _with_logs(given: Inputs) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """(the failed attempts, what the logs say of them, LOG_TAILS)."""
    taxonomy = given.settings.taxonomy
    attempts = pl.concat(_attempts_by_block(given))
    of_logs, lines = in_tails(read_tails(given.path("tails"), most_characters(taxonomy)), attempts, taxonomy)
    return classify(attempts.filter("failed"), taxonomy, of_logs), of_logs, lines


def by_block(given: Inputs, size: int = BLOCK_ROWS) -> pl.DataFrame:
    """The failed attempts, of so many jobs at a time."""
    taxonomy, failed = given.settings.taxonomy, _attempts_by_block(given, size, pl.col("failed"))
    return pl.concat([classify(some, taxonomy) for some in failed])


def _attempts_by_block(given: Inputs, size: int = BLOCK_ROWS, chosen: pl.Expr | bool = True) -> Iterator[pl.DataFrame]:
    attempts = given.scan("attempts", OF_ATTEMPTS) if "attempts" in given else None
    jobs = given.scan("jobs", OF_JOBS if attempts is None else OF_TRIED_JOBS)
    return (every_attempt(*block, chosen) for block in blocks_with_attempts(jobs, attempts, size))


def with_health_events(classified: pl.DataFrame, lives: pl.LazyFrame) -> pl.DataFrame:
    """The failed attempts; those that a health event attributes to infrastructure and no rule does have HEALTH_EVENT.

    lives: of `ttf.records.infra.infra_lives`; so what is attributed to infrastructure is one set, whoever counts it.
    """
    told = lives.filter(pl.col("event") == EVENT, pl.col("basis") == "event")
    told = told.select(job_id="unit_id", attempt="life_id", told=True).collect(engine="streaming")
    if told.is_empty():
        return classified
    rows = classified.join(told, on=["job_id", "attempt"], how="left", maintain_order="left")
    kinds = [kind_of(*row) for row in classified.select(pl.col("reason").fill_null(NO_RULE), "domain").iter_rows()]
    by_event = pl.col("told").fill_null(False) & (pl.Series(kinds, dtype=pl.String) != "infra")
    of_event = {
        "reason": pl.lit(HEALTH_EVENT),
        "domain": pl.lit(OF_INFRASTRUCTURE),
        "category": pl.lit(None, pl.String),
        "deterministic": pl.lit(False),
        "evidence": pl.lit("event"),
    }
    changed = {name: pl.when(by_event).then(value).otherwise(name) for name, value in of_event.items()}
    return rows.with_columns(**changed).drop("told")


def taxonomy_table(classified: pl.DataFrame) -> pl.DataFrame:
    """The columns of Philly's Table 7 (Jeon et al., ATC'19): one row per group of failed attempts (TAXONOMY).

    by: `reason`, the most trials first and `unmatched` last; `domain`, each set of domains by itself, so that the rows
    add up; `evidence`; `deterministic`; `all`. RTF x demand is summed in whole milli-GPU seconds. GPU demand: whole
    GPUs of the attempt, rounded up.
    """
    gpus = (pl.col("gpu_milli") + 999) // 1000
    rows = classified.with_row_index("unit").with_columns(
        gpus=gpus.fill_null(0),
        product=pl.col("gpu_milli").cast(pl.Int128) * pl.col("runtime_s"),
        # Numbers are told apart sooner than texts.
        unit=pl.col("unit").first().over("job_id", "task"),
    )
    counted = [
        pl.len().cast(pl.Int64).alias("trials"),
        pl.col("unit").n_unique().cast(pl.Int64).alias("jobs"),
        _users().alias("users"),
        pl.col("runtime_s").count().cast(pl.Int64).alias("n"),
        *(pl.col("runtime_s").quantile(q / 100, "linear").alias(f"rtf_p{q}_s") for q in (50, 90, 95)),
        pl.when(pl.col("runtime_s").count() > 0).then(pl.col("runtime_s").sum()).alias("rtf_total_s"),
        (pl.col("gpus") == 0).sum().cast(pl.Int64).alias("gpu_none"),
        (pl.col("gpus") == 1).sum().cast(pl.Int64).alias("gpu_1"),
        pl.col("gpus").is_between(2, 4).sum().cast(pl.Int64).alias("gpu_2_4"),
        (pl.col("gpus") > 4).sum().cast(pl.Int64).alias("gpu_gt4"),
        pl.when(pl.col("product").count() > 0).then(pl.col("product").sum()).alias("product"),
    ]
    of_reason = ["reason", "domain", "category", "deterministic"]
    groups = {"reason": of_reason, "domain": ["domain"], "evidence": ["evidence"], "deterministic": ["deterministic"]}
    parts = [
        rows.group_by(keys, maintain_order=True)
        .agg(counted)
        .sort(pl.col(keys[0]).is_null(), pl.col("trials").neg(), *keys)
        .with_columns(pl.lit(by).alias("by"))
        for by, keys in groups.items()
    ]
    parts.append(rows.select(counted).filter(pl.col("trials") > 0).with_columns(pl.lit("all").alias("by")))
    table = pl.concat(parts, how="diagonal")
    total = parts[-1].select("trials", "rtf_total_s", "product").row(0, named=True) if rows.height else {}
    grouped_by = pl.coalesce(pl.when(pl.col("by") == by).then(pl.col(by).is_null()) for by in groups)
    notes = {
        "no rule matches": grouped_by,
        "no user is known": pl.col("users").is_null(),
        "no run time is known": pl.col("rtf_total_s").is_null(),
        "no GPU demand is known": pl.col("product").is_null() & pl.col("rtf_total_s").is_not_null(),
    }
    table = table.with_columns(
        _over(table["trials"], total.get("trials")).alias("trials_share"),
        _over(table["rtf_total_s"], total.get("rtf_total_s")).alias("rtf_total_share"),
        _over(table["product"], total.get("product")).alias("rtf_x_demand_share"),
        _over(table["product"], 1000).alias("rtf_x_demand_gpu_s"),
        pl.when(pl.col("by") == "reason").then(pl.col("reason").fill_null(NO_RULE)).alias("reason"),
        note=join_reasons(notes),
    )
    return table.select(*TAXONOMY.columns).cast(TAXONOMY.schema)


def failure_kinds(table: pl.DataFrame) -> pl.DataFrame:
    """FAILURE_KINDS; table: TAXONOMY."""
    reasons, rows, time = table.filter(by="reason"), [], "rtf_x_demand_share"
    kinds = [kind_of(*row) for row in reasons.select("reason", "domain").iter_rows()]
    n, has_time = reasons["trials"].sum(), reasons[time].count() > 0
    by_kind = reasons.with_columns(kind=pl.Series(kinds, dtype=pl.String)).group_by("kind", maintain_order=True)
    for (kind,), part in by_kind:
        trials = part["trials"].sum()
        row = {"kind": kind, "trials": trials, "n": n, "trials_share": trials / n}
        rows.append(row | {"gpu_share": part[time].sum() if has_time else None})
    return FAILURE_KINDS.frame(rows)


def summarise_taxonomy(table: pl.DataFrame, tails: pl.DataFrame) -> pl.DataFrame:
    """The one row of TAXONOMY_SUMMARY; table: TAXONOMY, tails: LOG_TAILS."""
    trials, lines = table.filter(by="all")["trials"].sum(), tails.filter(code="lines")["rows"]
    matched = table.filter(pl.col("domain").is_not_null(), by="reason")["trials"].sum()
    row = {"trials": trials, "matched": matched}
    if trials:
        row |= {"matched_share": matched / trials, "unmatched_share": (trials - matched) / trials}
    if lines.len():
        row |= {"lines": lines.item(), "wrong_lines": tails.filter(severity="error")["rows"].sum()}
    return TAXONOMY_SUMMARY.frame([row])


def kind_of(reason: str, domain: str | None) -> str:
    """What a row by reason is: limit, infra (its cause lies in system software or hardware alone), none or other."""
    if reason == NO_RULE or domain is None:
        return "none"
    return "limit" if reason == TIME_LIMIT else "other" if "user program" in domain else "infra"


def _users() -> pl.Expr:
    """How many users there are, blank where none is known."""
    return pl.when(pl.col("user").count() > 0).then(pl.col("user").drop_nulls().n_unique()).cast(pl.Int64)


def _over(values: pl.Series, whole: int | None) -> pl.Series:
    """Whole numbers over another, rounded once; blank where there is nothing to share.

    Polars would multiply by the reciprocal, so that 3 of 5 is not 0.6.
    """
    shares = [value / whole if whole and value is not None else None for value in values]
    return pl.Series(shares, dtype=pl.Float64)


def unmatched_table(classified: pl.DataFrame, of_logs: pl.DataFrame | None = None) -> pl.DataFrame:
    """What is known of the failed attempts that no rule matches, the commonest first: at most MOST_LINES rows.

    source `log`: the line of the log that says most, normalised; `record`: state, exit code and reason.
    """
    unmatched = classified.filter(pl.col("reason").is_null())
    schema = {name: ATTEMPT_COLUMNS[name] for name in KEY} | {"shown": pl.String}
    logs = pl.DataFrame(schema=schema) if of_logs is None else of_logs.select(*schema).drop_nulls("shown")
    of_record = pl.concat_str(
        pl.format("state {}", "state"),
        pl.format("exit code {}", "exit_code"),
        pl.format("reason {}", normalised("failure_reason")),
        separator=", ",
        ignore_nulls=True,
    )
    rows = unmatched.with_columns(record=pl.when(of_record != "").then(of_record.str.head(LONGEST_LINE))).join(
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
            users=_users(),
        )
        .sort(pl.col("trials").neg(), "source", "line")
        .head(MOST_LINES)
    )
    table = table.with_columns(trials_share=_over(table["trials"], unmatched.height))
    return table.select(*UNMATCHED.columns).cast(UNMATCHED.schema)
