"""Match failed attempts with the rules of config/taxonomy.yaml.

A taxonomy is the mapping that `ttf.study.configuration.taxonomy.load_taxonomy` returns: tail_kib, reasons (name ->
domain, category, deterministic) and rules, in order, each a reason with its text, word, state and exit_code. The first
rule that matches an attempt by any of these gives its reason. Rust's regex engine searches texts in time proportional
to their length, whatever they hold.
"""

from collections.abc import Iterable

import polars as pl

from ttf.analyses.causes.classify_failures import TAXONOMY
from ttf.records.jobs import add_blank_columns, choose_text

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
# Kinds of evidence; if several agree, the first is named.
EVIDENCE = ("text", "reason", "exit_code", "state")
_REASON_COLUMNS = ("reason", "domain", "category", "deterministic")
# Columns for `list_attempts`: of jobs without attempts, of jobs with attempts, and of attempts.
JOB_COLUMNS = (
    *("job_id", "task", "user", "outcome", "runtime_s", "gpu_milli", "size", "status_raw", "reason"),
    *("exit_code", "derived_exit_code"),
)
PARENT_JOB_COLUMNS = ("task", "user", "derived_exit_code")
RAW_COLUMNS = ("job", "job_id", "attempt", "outcome", "runtime_s", "gpu_milli", "state", "exit_code", "slurm_reason")


def list_attempts(
    jobs: pl.DataFrame, attempts: pl.DataFrame | None = None, chosen: pl.Expr | bool = True
) -> pl.DataFrame:
    """List the attempts in the order of the trace with ATTEMPT_COLUMNS; without `attempts`, each job is one.

    attempts: with `job`, the row of their job. An attempt failed if its outcome is failure, or if it has none and
    another attempt followed (Philly). gpu_milli: GPUs of the whole attempt. exit_code: `code:signal`; if the last
    attempt has none, that of the job's steps (sacct's DerivedExitCode). chosen: filter by is_last and failed.
    """
    rows = _flag_failed(jobs, attempts, chosen)
    exit_code = pl.coalesce(_fold_exit_code(pl.col("exit_code")), _fold_exit_code(pl.col("derived_exit_code")))
    return rows.with_columns(exit_code=exit_code).select(*ATTEMPT_COLUMNS).cast(pl.Schema(ATTEMPT_COLUMNS))


def _flag_failed(jobs: pl.DataFrame, attempts: pl.DataFrame | None, chosen: pl.Expr | bool) -> pl.DataFrame:
    """Return the chosen attempts with is_last, failed and the columns of their jobs."""
    if attempts is None:
        filled = add_blank_columns(jobs, dict.fromkeys(("reason", "exit_code", "derived_exit_code"), pl.String))
        job_values = {"gpu_milli": pl.col("gpu_milli") * pl.col("size"), "attempt": pl.lit(0, pl.Int64)}
        rows = filled.with_columns(**job_values, is_last=pl.lit(True), failed=pl.col("outcome") == "failure")
        return rows.filter(chosen).with_columns(state="status_raw", failure_reason="reason")
    is_last = pl.col("attempt") == pl.col("attempt").max().over("job")
    rows = add_blank_columns(attempts, dict.fromkeys(("state", "exit_code", "slurm_reason"), pl.String)).with_columns(
        is_last=is_last, failed=(pl.col("outcome") == "failure").fill_null(~is_last)
    )
    rows = rows.filter(chosen)
    job_rows = add_blank_columns(jobs, {"derived_exit_code": pl.String}).select("task", "user", "derived_exit_code")
    rows = rows.drop("job").hstack(job_rows[rows["job"]])
    return rows.with_columns(pl.when("is_last").then("derived_exit_code"), failure_reason="slurm_reason")


def fold_words(text: pl.Expr) -> pl.Expr:
    """Fold case and separators: lower case, one space for spaces, _ and -."""
    return text.str.strip_chars().str.to_lowercase().str.replace_all(r"[\s_-]+", " ")


def _fold_exit_code(text: pl.Expr) -> pl.Expr:
    """Return `code:signal` for 137, 137:0 or 0:9 (and Python's -9); blank for 0:0 and anything else."""
    parts = text.str.extract_groups(r"^\s*(-?)0*(\d{1,5})(?::0*(\d{1,5}))?\s*$")
    sign, code, signal = (parts.struct.field(str(number)) for number in (1, 2, 3))
    pair = pl.when(sign == "-").then(pl.format("0:{}", code)).otherwise(pl.format("{}:{}", code, signal.fill_null("0")))
    return pl.when(pair != "0:0").then(pair)


def searched_characters(taxonomy: dict) -> int:
    """Return the number of characters at the end of a text that rules search: `tail_kib` of the taxonomy."""
    return 1024 * taxonomy["tail_kib"]


def match_recorded(failed: pl.DataFrame, taxonomy: dict) -> pl.DataFrame:
    """Return for each attempt the first matching rule's index by reason, exit_code and state, a column each, or null.

    A text in the reason column is compared as a word and searched for the patterns of text.
    """
    rules = taxonomy["rules"]
    words = [[*rule["word"], rule["reason"]] for rule in rules]
    reasons = failed["failure_reason"].drop_nulls().unique(maintain_order=True)
    text_rule = search(reasons.str.tail(searched_characters(taxonomy)), rules)
    word_rule = _first_matching_rule(reasons, words)
    rule_by_reason = pl.DataFrame(
        {"failure_reason": reasons, "reason": pl.select(pl.min_horizontal(text_rule, word_rule)).to_series()}
    )
    states = [rule["state"] for rule in rules]
    codes = [[code if ":" in code else f"{code}:0" for code in rule["exit_code"]] for rule in rules]
    state_rule = _first_matching_rule(failed["state"], states)
    first_word_rule = _first_matching_rule(failed["state"].str.extract(r"^\s*(\S+)"), states)
    return (
        failed.select("failure_reason")
        .join(rule_by_reason, on="failure_reason", how="left", maintain_order="left")
        .select(
            "reason",
            exit_code=_first_matching_rule(failed["exit_code"], codes),
            state=pl.select(pl.min_horizontal(state_rule, first_word_rule)).to_series(),
        )
    )


def _first_matching_rule(values: pl.Series, words_by_rule: list[list[str]]) -> pl.Series:
    """Return, for each value, the index of the first list of words that contains it; null if none."""
    rule_by_word = pl.DataFrame(
        [(word, rule) for rule, words in enumerate(words_by_rule) for word in words],
        schema={"word": pl.String, "rule": pl.Int64},
        orient="row",
    )
    rule_by_word = rule_by_word.select(fold_words(pl.col("word")), "rule").unique(
        "word", keep="first", maintain_order=True
    )
    keys = pl.DataFrame({"word": values}).select(fold_words(pl.col("word")))
    return keys.join(rule_by_word, on="word", how="left", maintain_order="left")["rule"]


def search(texts: pl.Series, rules: Iterable[dict]) -> pl.Series:
    """Return, for each text, the index of the first rule with a pattern that it contains; null if none."""
    rule_by_text = pl.Series("rule", [None], dtype=pl.Int64).new_from_index(0, len(texts))
    pending = pl.DataFrame({"row": pl.int_range(len(texts), eager=True), "text": texts}).drop_nulls()
    for index, rule in enumerate(rules):
        for pattern in rule["text"]:
            if not pending.height:
                return rule_by_text
            is_match = pending["text"].str.contains(pattern)
            if is_match.any():
                rule_by_text = rule_by_text.scatter(pending.filter(is_match)["row"], index)
                pending = pending.filter(~is_match)
    return rule_by_text


def classify(failed: pl.DataFrame, taxonomy: dict, tail_matches: pl.DataFrame | None = None) -> pl.DataFrame:
    """Add reason, domain, category, deterministic and evidence (what decided) to failed attempts; null if unmatched.

    domain and category are texts, such as `system software or hardware`. tail_matches: from `match_tails`.
    """
    matches = match_recorded(failed, taxonomy)
    text = pl.Series([None], dtype=pl.Int64).new_from_index(0, failed.height)
    if tail_matches is not None:
        text_rules = tail_matches.group_by(KEY, maintain_order=True).agg(pl.col("rule").min())
        text = failed.select(KEY).join(text_rules, on=KEY, how="left", nulls_equal=True, maintain_order="left")["rule"]
    matches = matches.with_columns(text=text).with_columns(rule=pl.min_horizontal(EVIDENCE))
    evidence = choose_text({name: pl.col(name) == pl.col("rule") for name in EVIDENCE})
    described = pl.DataFrame(
        [
            (index, name, " or ".join(reason["domain"]), ",".join(reason["category"]) or None, reason["deterministic"])
            for index, name in enumerate(rule["reason"] for rule in taxonomy["rules"])
            for reason in [taxonomy["reasons"][name]]
        ],
        schema={"rule": pl.Int64, **{name: TAXONOMY.schema[name] for name in _REASON_COLUMNS}},
        orient="row",
    )
    decided = matches.select("rule", evidence=evidence).join(described, on="rule", how="left", maintain_order="left")
    return failed.hstack(decided.select(*_REASON_COLUMNS, "evidence"))
