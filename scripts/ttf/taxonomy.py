"""Reasons of failures: the rules of config/taxonomy.yaml on what is known of each failed attempt.

A taxonomy is the mapping that `study.taxonomy.taxonomy_of` gives: tail_kib, reasons (name -> domain, category,
deterministic) and rules, in order, each a reason with its text, word, state and exit_code. The first rule that matches
an attempt by any of these gives its reason. Texts are searched by Polars' engine (Rust's regex), in time proportional
to their length whatever they hold.
"""

from collections.abc import Iterable

import polars as pl

from ttf.log_tails import WRONG

KEY = ["job_id", "task", "attempt"]
ATTEMPT_COLUMNS = {
    "job_id": pl.String,
    "task": pl.String,
    "attempt": pl.Int64,
    "is_last": pl.Boolean,
    "failed": pl.Boolean,
    "user": pl.String,
    "runtime_s": pl.Int64,
    "gpu_milli": pl.Int64,
    "state": pl.String,
    "exit_code": pl.String,
    "failure_reason": pl.String,
}
# What decided, in the order in which it is named where several agree.
EVIDENCE = ("text", "reason", "exit_code", "state")
UNMATCHED = "unmatched"

# Of reasons.parquet, a row per failed attempt.
REASON_COLUMNS = ["job_id", "attempt", "reason", "domain", "deterministic", "task", "evidence"]

# Of an unmatched log this much of the end is looked through for the line to show.
SHOWN_FROM_CHARACTERS = 4096
LONGEST_LINE = 200
MOST_LINES = 100
_TELLING = r"(?i)error|exception|fail|fatal|abort|killed|cannot|could not|unable|denied|panic|invalid|not found"

TAIL_CODES = WRONG | {
    "unknown_job": "the trace has no such job, or it never ran",
    "unknown_attempt": "the job has no such attempt",
    "not_failed": "the attempt did not fail, so its text is not looked at",
}
TAILS_COLUMNS = {
    "code": pl.String,
    "severity": pl.String,
    "rows": pl.Int64,
    "share": pl.Float64,
    "first_lines": pl.String,
    "sentence": pl.String,
}


def every_attempt(jobs: pl.DataFrame, attempts: pl.DataFrame | None = None) -> pl.DataFrame:
    """Every attempt in the order of the trace, with ATTEMPT_COLUMNS.

    Without `attempts` each job is one attempt. With them, an attempt failed if its outcome is failure, or if the trace
    gives it none and another one followed (Philly). gpu_milli: GPUs of the whole attempt. exit_code: `code:signal`, of
    the last attempt also that of the job's steps (sacct's DerivedExitCode) where its own says nothing.
    """
    if attempts is None:
        every = _with_blanks(jobs, "reason", "exit_code", "derived_exit_code").with_columns(
            attempt=pl.lit(0, pl.Int64),
            is_last=pl.lit(True),
            failed=pl.col("outcome") == "failure",
            gpu_milli=pl.col("gpu_milli") * pl.col("size"),
            state="status_raw",
            failure_reason="reason",
        )
    else:
        is_last = pl.col("attempt") == pl.col("attempt").max().over("job_id")
        of_jobs = _with_blanks(jobs, "derived_exit_code").select("job_id", "task", "user", "derived_exit_code")
        every = (
            _with_blanks(attempts, "state", "exit_code", "slurm_reason")
            .join(of_jobs, on="job_id", how="left", maintain_order="left")
            .with_columns(is_last=is_last, failed=(pl.col("outcome") == "failure").fill_null(~is_last))
            .with_columns(pl.when("is_last").then("derived_exit_code"), failure_reason="slurm_reason")
        )
    exit_code = pl.coalesce(_code(pl.col("exit_code")), _code(pl.col("derived_exit_code")))
    return every.with_columns(exit_code=exit_code).select(*ATTEMPT_COLUMNS).cast(ATTEMPT_COLUMNS)


def _with_blanks(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """The frame with these columns of text, blank where it has none of the name."""
    return frame.with_columns(pl.lit(None, pl.String).alias(name) for name in names if name not in frame.columns)


def folded(text: pl.Expr) -> pl.Expr:
    """A word as it is compared: small letters, one blank for blanks, _ and -."""
    return text.str.strip_chars().str.to_lowercase().str.replace_all(r"[\s_-]+", " ")


def _code(text: pl.Expr) -> pl.Expr:
    """`code:signal` of 137, 137:0 or 0:9 (and of Python's -9); blank for 0:0 and for anything else."""
    parts = text.str.extract_groups(r"^\s*(-?)0*(\d{1,5})(?::0*(\d{1,5}))?\s*$")
    sign, code, signal = (parts.struct.field(str(number)) for number in (1, 2, 3))
    told = pl.when(sign == "-").then(pl.format("0:{}", code)).otherwise(pl.format("{}:{}", code, signal.fill_null("0")))
    return pl.when(told != "0:0").then(told)


def most_characters(taxonomy: dict) -> int:
    """How much of a text is searched, from its end."""
    return 1024 * taxonomy["tail_kib"]


# Rules --------------------------------------------------------------------------------------------------


def first_rules(failed: pl.DataFrame, taxonomy: dict) -> pl.DataFrame:
    """The number of the first rule that each kind of evidence but the log matches: columns reason, exit_code, state.

    One row per row of `failed`; null where no rule matches. A text in the reason column is compared as a word and
    searched for the patterns of text.
    """
    rules = taxonomy["rules"]
    words = [[*rule["word"], rule["reason"]] for rule in rules]
    reasons = failed["failure_reason"].drop_nulls().unique(maintain_order=True)
    by_text = search(reasons.str.tail(most_characters(taxonomy)), rules)
    by_word = _first_of(reasons, words)
    of_reason = pl.DataFrame(
        {"failure_reason": reasons, "reason": pl.select(pl.min_horizontal(by_text, by_word)).to_series()}
    )
    states = [rule["state"] for rule in rules]
    codes = [[code if ":" in code else f"{code}:0" for code in rule["exit_code"]] for rule in rules]
    whole, first_word = _first_of(failed["state"], states), _first_of(failed["state"].str.extract(r"^\s*(\S+)"), states)
    return (
        failed.select("failure_reason")
        .join(of_reason, on="failure_reason", how="left", maintain_order="left")
        .select(
            "reason",
            exit_code=_first_of(failed["exit_code"], codes),
            state=pl.select(pl.min_horizontal(whole, first_word)).to_series(),
        )
    )


def _first_of(values: pl.Series, words: list[list[str]]) -> pl.Series:
    """The place of the first list of words that each value is in, null for none."""
    listed = pl.DataFrame(
        [(word, place) for place, of_rule in enumerate(words) for word in of_rule],
        schema={"word": pl.String, "place": pl.Int64},
        orient="row",
    )
    listed = listed.select(folded(pl.col("word")), "place").unique("word", keep="first", maintain_order=True)
    asked = pl.DataFrame({"word": values}).select(folded(pl.col("word")))
    return asked.join(listed, on="word", how="left", maintain_order="left")["place"]


def search(texts: pl.Series, rules: Iterable[dict]) -> pl.Series:
    """The number of the first rule one of whose patterns each text holds; null where none does."""
    found = pl.Series("rule", [None], dtype=pl.Int64).new_from_index(0, len(texts))
    pending = pl.DataFrame({"row": pl.int_range(len(texts), eager=True), "text": texts}).drop_nulls()
    for number, rule in enumerate(rules):
        for pattern in rule["text"]:
            if not pending.height:
                return found
            hit = pending["text"].str.contains(pattern)
            if hit.any():
                found = found.scatter(pending.filter(hit)["row"], number)
                pending = pending.filter(~hit)
    return found


# Logs ---------------------------------------------------------------------------------------------------


def in_tails(
    tails: Iterable[tuple[pl.DataFrame, pl.DataFrame]], every: pl.DataFrame, taxonomy: dict
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What the logs tell: per text of a failed attempt KEY, rule, shown; what became of the lines, TAILS_COLUMNS.

    `tails` is what `read_tails` yields, `every` what `every_attempt` returns. rule is the
    number of the first that matches, else null, and then `shown` the line that says most (see `telling_line`).
    """
    attempts = every.select(*KEY, "failed")
    lasts = every.filter("is_last").select(*KEY[:2], last="attempt")
    texts, lines = [], []
    for tail, wrong in tails:
        told = tail.join(lasts, on=KEY[:2], how="left", nulls_equal=True, maintain_order="left")
        told = told.with_columns(pl.coalesce("attempt", "last")).join(
            attempts, on=KEY, how="left", nulls_equal=True, maintain_order="left"
        )
        code = (
            pl.when(pl.col("last").is_null())
            .then(pl.lit("unknown_job"))
            .when(pl.col("failed").is_null())
            .then(pl.lit("unknown_attempt"))
            .when(~pl.col("failed"))
            .then(pl.lit("not_failed"))
        )
        told = told.with_columns(code=code)
        lines += [wrong, told.select("line", "code")]
        told = told.filter(pl.col("code").is_null())
        told = told.with_columns(rule=search(told["text"], taxonomy["rules"]))
        shown = pl.when(pl.col("rule").is_null()).then("text")
        texts.append(told.select(*KEY, "rule", shown=telling_line(told.select(shown).to_series())))
    schema = {name: ATTEMPT_COLUMNS[name] for name in KEY} | {"rule": pl.Int64, "shown": pl.String}
    found = pl.concat([pl.DataFrame(schema=schema), *texts])
    return found, _account(pl.concat([pl.DataFrame(schema={"line": pl.Int64, "code": pl.String}), *lines]).sort("line"))


def _account(lines: pl.DataFrame) -> pl.DataFrame:
    """A row per code that occurs, after one for all lines that are not blank: none where there are none."""
    rows = [("lines", "info", lines.height, None, None, "lines that are not blank")] if lines.height else []
    for code, sentence in TAIL_CODES.items():
        group = lines.filter(pl.col("code") == code)
        if group.height:
            first = ", ".join(str(line) for line in group["line"].head(5))
            severity = "info" if code == "not_failed" else "error"
            rows.append((code, severity, group.height, group.height / lines.height, first, sentence))
    return pl.DataFrame(rows, schema=TAILS_COLUMNS, orient="row")


def telling_line(texts: pl.Series) -> pl.Series:
    """Of each text the last line with a word such as error in it, else the last line, normalised; null for blank texts.

    Looked for in the last SHOWN_FROM_CHARACTERS. Normalised: without control characters, # for numbers and for
    hexadecimal words of eight digits and more, at most LONGEST_LINE characters: the same complaint is the same line.
    """
    rows = pl.DataFrame({"row": pl.int_range(len(texts), eager=True), "line": texts}).drop_nulls()
    lines = (
        rows.with_columns(pl.col("line").str.tail(SHOWN_FROM_CHARACTERS).str.split("\n"))
        .explode("line")
        .with_columns(_normalised("line"))
        .filter(pl.col("line") != "")
    )
    telling = pl.col("line").filter(pl.col("line").str.contains(_TELLING)).last()
    shown = lines.group_by("row", maintain_order=True).agg(pl.coalesce(telling, pl.col("line").last()))
    shown = shown.with_columns(pl.col("line").str.head(LONGEST_LINE))
    return pl.DataFrame({"row": pl.int_range(len(texts), eager=True)}).join(
        shown, on="row", how="left", maintain_order="left"
    )["line"]


def _normalised(column: str) -> pl.Expr:
    plain = pl.col(column).str.replace_all(r"\x1b\[[0-9;]*[A-Za-z]", "").str.replace_all(r"[\p{C}\s]+", " ")
    return plain.str.replace_all(r"0[xX][0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b|\d+", "#").str.strip_chars()


# Reasons ------------------------------------------------------------------------------------------------


def classify(failed: pl.DataFrame, taxonomy: dict, of_logs: pl.DataFrame | None = None) -> pl.DataFrame:
    """The failed attempts with reason, domain, category, deterministic, evidence (what decided); null without a rule.

    domain and category are texts, such as `system software or hardware`. `of_logs` is the first result of `in_tails`;
    of several texts of one attempt the rule that stands first counts.
    """
    found = first_rules(failed, taxonomy)
    text = pl.Series([None], dtype=pl.Int64).new_from_index(0, failed.height)
    if of_logs is not None:
        by_attempt = of_logs.group_by(KEY, maintain_order=True).agg(pl.col("rule").min())
        text = failed.select(KEY).join(by_attempt, on=KEY, how="left", nulls_equal=True, maintain_order="left")["rule"]
    found = found.with_columns(text=text).with_columns(rule=pl.min_horizontal(EVIDENCE))
    decided = pl.coalesce(pl.when(pl.col(name) == pl.col("rule")).then(pl.lit(name)) for name in EVIDENCE)
    reasons = taxonomy["reasons"]
    described = pl.DataFrame(
        [
            (
                number,
                rule["reason"],
                " or ".join(about["domain"]),
                ",".join(about["category"]) or None,
                about["deterministic"],
            )
            for number, rule in enumerate(taxonomy["rules"])
            for about in [reasons[rule["reason"]]]
        ],
        schema={
            "rule": pl.Int64,
            "reason": pl.String,
            "domain": pl.String,
            "category": pl.String,
            "deterministic": pl.Boolean,
        },
        orient="row",
    )
    told = found.select("rule", evidence=decided).join(described, on="rule", how="left", maintain_order="left")
    return failed.hstack(told.select("reason", "domain", "category", "deterministic", "evidence"))


TABLE_COLUMNS = {
    "by": pl.String,
    "reason": pl.String,
    "domain": pl.String,
    "category": pl.String,
    "deterministic": pl.Boolean,
    "evidence": pl.String,
    "trials": pl.Int64,
    "trials_share": pl.Float64,
    "jobs": pl.Int64,
    "users": pl.Int64,
    "n": pl.Int64,
    "rtf_p50_s": pl.Float64,
    "rtf_p90_s": pl.Float64,
    "rtf_p95_s": pl.Float64,
    "rtf_total_s": pl.Int64,
    "rtf_total_share": pl.Float64,
    "gpu_none": pl.Int64,
    "gpu_1": pl.Int64,
    "gpu_2_4": pl.Int64,
    "gpu_gt4": pl.Int64,
    "rtf_x_demand_gpu_s": pl.Float64,
    "rtf_x_demand_share": pl.Float64,
    "note": pl.String,
}


def taxonomy_table(classified: pl.DataFrame) -> pl.DataFrame:
    """The columns of Philly's Table 7 (Jeon et al., ATC'19): one row per group of failed attempts, TABLE_COLUMNS.

    by: `reason`, the most trials first and `unmatched` last; `domain`, each set of domains by itself, so that the rows
    add up; `evidence`, what decided; `deterministic`; `all`. trials: failed attempts; jobs and users: of how many; n:
    trials with a known run time, of which RTF (run time to failure, seconds) is made: quantiles linear between ranks,
    the total, and RTF x demand in GPU-seconds, summed in whole milli-GPU seconds. GPU demand: whole GPUs of the
    attempt, rounded up; gpu_none: none, or not known. Shares are those of all failed attempts. note: why a number is
    blank.
    """
    gpus = (pl.col("gpu_milli") + 999) // 1000
    rows = classified.with_columns(
        gpus=gpus.fill_null(0),
        product=pl.col("gpu_milli").cast(pl.Int128) * pl.col("runtime_s"),
        unit=pl.struct("job_id", "task"),
    )
    counted = [
        pl.len().cast(pl.Int64).alias("trials"),
        pl.col("unit").n_unique().cast(pl.Int64).alias("jobs"),
        pl.when(pl.col("user").count() > 0).then(pl.col("user").drop_nulls().n_unique()).cast(pl.Int64).alias("users"),
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
    notes = [
        pl.when(grouped_by).then(pl.lit("no rule matches")),
        pl.when(pl.col("users").is_null()).then(pl.lit("no user is known")),
        pl.when(pl.col("rtf_total_s").is_null()).then(pl.lit("no run time is known")),
        pl.when(pl.col("product").is_null() & pl.col("rtf_total_s").is_not_null()).then(
            pl.lit("no GPU demand is known")
        ),
    ]
    note = pl.concat_str(*notes, separator="; ", ignore_nulls=True)
    table = table.with_columns(
        _over(table["trials"], total.get("trials")).alias("trials_share"),
        _over(table["rtf_total_s"], total.get("rtf_total_s")).alias("rtf_total_share"),
        _over(table["product"], total.get("product")).alias("rtf_x_demand_share"),
        _over(table["product"], 1000).alias("rtf_x_demand_gpu_s"),
        pl.when(pl.col("by") == "reason").then(pl.col("reason").fill_null(UNMATCHED)).alias("reason"),
        note=pl.when(note != "").then(note),
    )
    return table.select(*TABLE_COLUMNS).cast(TABLE_COLUMNS)


def _over(values: pl.Series, whole: int | None) -> pl.Series:
    """Whole numbers over another, rounded once; blank where there is nothing to share.

    Polars would multiply by the reciprocal, so that 3 of 5 is not 0.6.
    """
    shares = [value / whole if whole and value is not None else None for value in values]
    return pl.Series(shares, dtype=pl.Float64)


UNMATCHED_COLUMNS = {
    "source": pl.String,
    "line": pl.String,
    "trials": pl.Int64,
    "trials_share": pl.Float64,
    "jobs": pl.Int64,
    "users": pl.Int64,
}


def unmatched_table(classified: pl.DataFrame, of_logs: pl.DataFrame | None = None) -> pl.DataFrame:
    """What is known of the failed attempts that no rule matches, the commonest first: at most MOST_LINES rows.

    source `log`: the line of the log that says most, normalised; `record`: state, exit code and reason of an attempt
    without one. trials_share: of all unmatched attempts.
    """
    unmatched = classified.filter(pl.col("reason").is_null())
    schema = {name: ATTEMPT_COLUMNS[name] for name in KEY} | {"shown": pl.String}
    logs = pl.DataFrame(schema=schema) if of_logs is None else of_logs.select(*schema).drop_nulls("shown")
    of_record = pl.concat_str(
        pl.format("state {}", "state"),
        pl.format("exit code {}", "exit_code"),
        pl.format("reason {}", _normalised("failure_reason")),
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
            users=pl.when(pl.col("user").count() > 0).then(pl.col("user").drop_nulls().n_unique()).cast(pl.Int64),
        )
        .sort(pl.col("trials").neg(), "source", "line")
        .head(MOST_LINES)
    )
    table = table.with_columns(trials_share=_over(table["trials"], unmatched.height))
    return table.select(*UNMATCHED_COLUMNS).cast(UNMATCHED_COLUMNS)
