"""Reasons of failures: the rules of config/taxonomy.yaml on what is known of each failed attempt.

A taxonomy is the mapping that `study.taxonomy.taxonomy_of` gives: tail_kib, reasons (name -> domain, category,
deterministic) and rules, in order, each a reason with its text, word, state and exit_code. The first rule that matches
an attempt by any of these gives its reason. Texts are searched by Polars' engine (Rust's regex), in time proportional
to their length whatever they hold.
"""

from collections.abc import Iterable

import polars as pl

from ttf.analyses.causes.classify_failures import TAXONOMY
from ttf.records.jobs import choose_text, with_blanks

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
_OF_REASON = ("reason", "domain", "category", "deterministic")
# What is read for `every_attempt`: of jobs that are attempts, of jobs that have attempts, and of these.
OF_JOBS = ("job_id", "task", "user", "outcome", "runtime_s", "gpu_milli", "size", "status_raw", "reason", "exit_code")
OF_JOBS += ("derived_exit_code",)
OF_TRIED_JOBS = ("task", "user", "derived_exit_code")
OF_ATTEMPTS = ("job", "job_id", "attempt", "outcome", "runtime_s", "gpu_milli", "state", "exit_code", "slurm_reason")


def every_attempt(
    jobs: pl.DataFrame, attempts: pl.DataFrame | None = None, chosen: pl.Expr | bool = True
) -> pl.DataFrame:
    """The attempts in the order of the trace, with ATTEMPT_COLUMNS; without `attempts` each job is one.

    attempts: with `job`, the row of theirs. An attempt failed if its outcome is failure, or if the
    trace gives it none and another one followed (Philly). gpu_milli: GPUs of the whole attempt. exit_code:
    `code:signal`; of the last attempt also that of the job's steps (sacct's DerivedExitCode) where its own says
    nothing. chosen: which attempts, by is_last and failed.
    """
    every = _with_failed(jobs, attempts, chosen)
    exit_code = pl.coalesce(_code(pl.col("exit_code")), _code(pl.col("derived_exit_code")))
    return every.with_columns(exit_code=exit_code).select(*ATTEMPT_COLUMNS).cast(ATTEMPT_COLUMNS)


def _with_failed(jobs: pl.DataFrame, attempts: pl.DataFrame | None, chosen: pl.Expr | bool) -> pl.DataFrame:
    """The attempts that are chosen with is_last and failed, and what their jobs say of them."""
    if attempts is None:
        blank = with_blanks(jobs, dict.fromkeys(("reason", "exit_code", "derived_exit_code"), pl.String))
        of_job = {"gpu_milli": pl.col("gpu_milli") * pl.col("size"), "attempt": pl.lit(0, pl.Int64)}
        every = blank.with_columns(**of_job, is_last=pl.lit(True), failed=pl.col("outcome") == "failure")
        return every.filter(chosen).with_columns(state="status_raw", failure_reason="reason")
    is_last = pl.col("attempt") == pl.col("attempt").max().over("job")
    every = with_blanks(attempts, dict.fromkeys(("state", "exit_code", "slurm_reason"), pl.String)).with_columns(
        is_last=is_last, failed=(pl.col("outcome") == "failure").fill_null(~is_last)
    )
    every = every.filter(chosen)
    about = with_blanks(jobs, {"derived_exit_code": pl.String}).select("task", "user", "derived_exit_code")
    every = every.drop("job").hstack(about[every["job"]])
    return every.with_columns(pl.when("is_last").then("derived_exit_code"), failure_reason="slurm_reason")


def folded(text: pl.Expr) -> pl.Expr:
    """A word as it is compared: small letters, one blank for blanks, _ and -."""
    return text.str.strip_chars().str.to_lowercase().str.replace_all(r"[\s_-]+", " ")


def _code(text: pl.Expr) -> pl.Expr:
    """`code:signal` of 137, 137:0 or 0:9 (and of Python's -9); blank for 0:0 and for anything else."""
    parts = text.str.extract_groups(r"^\s*(-?)0*(\d{1,5})(?::0*(\d{1,5}))?\s*$")
    sign, code, signal = (parts.struct.field(str(number)) for number in (1, 2, 3))
    both = pl.when(sign == "-").then(pl.format("0:{}", code)).otherwise(pl.format("{}:{}", code, signal.fill_null("0")))
    return pl.when(both != "0:0").then(both)


def most_characters(taxonomy: dict) -> int:
    """How much of a text is searched, from its end."""
    return 1024 * taxonomy["tail_kib"]


def first_rules(failed: pl.DataFrame, taxonomy: dict) -> pl.DataFrame:
    """Per row of `failed` the number of the first rule that each kind of evidence but the log matches; null without.

    A text in the reason column is compared as a word and searched for the patterns of text.
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


def classify(failed: pl.DataFrame, taxonomy: dict, of_logs: pl.DataFrame | None = None) -> pl.DataFrame:
    """The failed attempts with reason, domain, category, deterministic, evidence (what decided); null without a rule.

    domain and category are texts, such as `system software or hardware`. of_logs: the first result of `in_tails`.
    """
    found = first_rules(failed, taxonomy)
    text = pl.Series([None], dtype=pl.Int64).new_from_index(0, failed.height)
    if of_logs is not None:
        by_attempt = of_logs.group_by(KEY, maintain_order=True).agg(pl.col("rule").min())
        text = failed.select(KEY).join(by_attempt, on=KEY, how="left", nulls_equal=True, maintain_order="left")["rule"]
    found = found.with_columns(text=text).with_columns(rule=pl.min_horizontal(EVIDENCE))
    decided = choose_text({name: pl.col(name) == pl.col("rule") for name in EVIDENCE})
    reasons = taxonomy["reasons"]
    described = pl.DataFrame(
        [
            (number, name, " or ".join(about["domain"]), ",".join(about["category"]) or None, about["deterministic"])
            for number, name in enumerate(rule["reason"] for rule in taxonomy["rules"])
            for about in [reasons[name]]
        ],
        schema={"rule": pl.Int64, **{name: TAXONOMY.schema[name] for name in _OF_REASON}},
        orient="row",
    )
    decided_by = found.select("rule", evidence=decided).join(described, on="rule", how="left", maintain_order="left")
    return failed.hstack(decided_by.select(*_OF_REASON, "evidence"))
