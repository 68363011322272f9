"""Next requests of run time and memory: a quantile of what jobs of the same user and request need to succeed."""

from collections.abc import Iterator, Sequence

import polars as pl

from ttf.analyses.queue.suggest_requests import LIMIT_ENDS, LIMIT_WORDS, SUGGESTED_MEMORY, SUGGESTED_TIME_LIMITS
from ttf.analyses.queue.suggest_requests.rolling_test import FEWEST_JOBS, SHARE, WHOLE, suggest_and_test
from ttf.engine.contract import Table
from ttf.records.inputs import Inputs
from ttf.records.jobs import add_blank_columns, choose_text, gpu_seconds_milli, observed_s
from ttf.records.runs import GPU_HOUR
from ttf.stats.durations.survival import survival_tables

# The other users and requests are in no table.
MOST_REQUESTS = 1000
# Requests as the jobs were submitted; column -> factor and text.
_AMOUNTS = dict.fromkeys(("gpu_requested_milli", "gpu_milli"), (1000, "GPUs")) | {"num_gpu": (1, "GPUs")}
_AMOUNTS |= dict.fromkeys(("cpu_requested_milli", "cpu_milli"), (1000, "cores"))
_AMOUNTS |= dict.fromkeys(("mem_requested_mib", "mem_mib"), (1024, "GiB"))
_AMOUNTS |= dict.fromkeys(("size", "inst_num"), (1, "instances"))
_LABELS = {"gpu_type_requested": "GPU", "gpu_type": "GPU", "partition": "partition", "qos": "QOS"}
_MEMORY_COLUMNS = ("mem_requested_mib", "mem_mib")
PEAK = "mem_peak_mib"
# Columns besides the profile that `suggest` reads.
_JOB_COLUMNS = (
    *("user", "outcome", "status_raw", "start_s", "end_s", "runtime_s", "trace_end_s", "attempts"),
    *("block_by", "block", "timelimit_s", "mem_mib", PEAK),
)
_OPTIONAL_COLUMNS = {"user": pl.String, "block_by": pl.String, "block": pl.Int64, "timelimit_s": pl.Int64}
_OPTIONAL_COLUMNS |= {"mem_mib": pl.Int64, PEAK: pl.Int64, "gpu_time": pl.Int128}

CENSORED = f"fewer than {SHARE:.0%} of the jobs succeed within the largest value seen"
# A suggestion needs so many tests, of which so many fit.
FEWEST_TESTS, SMALLEST_SHARE = 20, 0.8
UNTESTED = f"fewer than {FEWEST_TESTS} later jobs to test a suggestion"
BEYOND = "the test demands more than the largest value seen"
UNSUPPORTED = f"in the test fewer than {SMALLEST_SHARE:.0%} of the later jobs fitted"
NO_PEAK = "the trace records no peak memory of jobs"

# Names of the suggestions in `ttf score`, by those in the tables.
_SCORE_NAMES = {
    SUGGESTED_TIME_LIMITS: {"suggested_s": "suggested_time_limit_s"},
    SUGGESTED_MEMORY: {"suggested_mib": "suggested_memory_mib"},
}


def list_profile(at_submission: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the columns of the user and the request, without the time limit, that are known at submission."""
    return ["user", *(name for name in (*_AMOUNTS, *_LABELS) if name in at_submission and name in columns)]


def is_at_limit(resource: str) -> pl.Expr:
    """Return whether the job ended because it requested too little of the resource."""
    return pl.col("status_raw").str.to_uppercase().is_in(LIMIT_WORDS[resource]).fill_null(False)


def suggest(
    jobs: pl.DataFrame, profile: Sequence[str], contract: Table, most: int = MOST_REQUESTS
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the suggestions for a resource and the later jobs that tested them (see the module `rolling_test`).

    A row per combination of the profile in which a job ended at its limit. The event is success with this run time or
    peak memory. Any other end is right-censored: at the run time or peak that the job had, or at its request if it ran
    out of memory. So a job that failed or was stopped is taken to need as much as others that got so far. Jobs of
    several runs are excluded, because their run time is a sum.

    jobs: those that no longer wait, with _JOB_COLUMNS, the profile and gpu_time. contract: SUGGESTED_TIME_LIMITS or
    SUGGESTED_MEMORY. most: number of combinations; those whose jobs used most GPU time at the limit come first.
    """
    resource, unit = ("run time", "s") if contract is SUGGESTED_TIME_LIMITS else ("memory", "mib")
    keys = [name for name in profile if contract is SUGGESTED_TIME_LIMITS or name not in _MEMORY_COLUMNS]
    jobs = add_blank_columns(jobs, _OPTIONAL_COLUMNS).with_columns(at_limit=is_at_limit(resource))
    memory = pl.when("at_limit").then("mem_mib").otherwise(PEAK)
    jobs = jobs.with_columns(
        duration_s=observed_s() if contract is SUGGESTED_TIME_LIMITS else memory,
        request=pl.col("timelimit_s" if contract is SUGGESTED_TIME_LIMITS else "mem_mib"),
        event=pl.when(pl.col("outcome") == "success").then(pl.lit("success")),
    ).filter(pl.col("duration_s").is_not_null(), pl.col("attempts").fill_null(1) <= 1)
    sums = {"at_limit": pl.col("at_limit").sum(), "gpu_time": pl.col("gpu_time").filter("at_limit").sum().fill_null(0)}
    groups = jobs.group_by(keys, maintain_order=True).agg(**sums, requested=pl.col("request").max())
    groups = groups.filter(pl.col("at_limit") > 0).sort("gpu_time", "at_limit", descending=True, maintain_order=True)
    groups = groups.head(most).with_row_index("number")
    members = jobs.join(groups.select(*keys, "number"), on=keys, nulls_equal=True, maintain_order="left")
    suggestions, tests = suggest_and_test(members, contract is SUGGESTED_TIME_LIMITS)
    rows = groups.join(suggestions, on="number", maintain_order="left")
    reasons = {f"fewer than {FEWEST_JOBS} jobs": pl.col("n") < FEWEST_JOBS, CENSORED: pl.col("quantile").is_null()}
    reasons |= {UNTESTED: pl.col("tested") < FEWEST_TESTS, UNSUPPORTED: pl.col("fitted_share") < SMALLEST_SHARE}
    reasons |= {BEYOND: pl.col("suggested").is_null()}
    rows = rows.with_columns(reason=choose_text(reasons))
    return rows.select(
        *keys,
        *("n", "at_limit", "tested", "reason"),
        request=_format_request(keys),
        successes=pl.col("events"),
        gpu_hours=pl.Series([gpu_time / GPU_HOUR for gpu_time in rows["gpu_time"]], dtype=pl.Float64),
        fitted_share=pl.when(pl.col("tested") >= FEWEST_TESTS).then("fitted_share"),
        **{
            f"requested_{unit}": pl.col("requested"),
            f"suggested_{unit}": pl.when(pl.col("reason").is_null()).then("suggested"),
        },
    ), tests


def summarise_tests(tests: pl.DataFrame) -> dict[str, object]:
    """Return the tests' columns of LIMIT_ENDS: the share of all tests that fit, clustered by user and request."""
    if tests.height < FEWEST_TESTS:
        return {"tested": tests.height, "reason": UNTESTED}
    cluster = pl.col("number").cast(pl.UInt32)
    names = {name: pl.lit("user and request") for name in ("cluster_by", "group_by")}
    curves, _ = survival_tables(tests.with_columns(cluster=cluster, group=cluster, **names), "success", ["all"])
    last = curves.filter(pl.col("time_s") <= WHOLE).row(-1, named=True)
    row: dict[str, object] = {"tested": tests.height, "fitted_share": 1 - last["survival"]}
    row |= {name: last[name] for name in ("cluster_by", "clusters", "reason")}
    for form in ("", "_clustered"):
        bounds = {f"ci_low{form}": last[f"ci_high{form}"], f"ci_high{form}": last[f"ci_low{form}"]}
        row |= {name: None if bound is None else 1 - bound for name, bound in bounds.items()}
    return row


def _format_request(keys: Sequence[str]) -> pl.Expr:
    """Return the request in words: 8 GPUs, 96 cores, partition gpu."""
    parts = [pl.lit(None, pl.String)]
    for name, (factor, noun) in _AMOUNTS.items():
        number = (pl.when(pl.col(name) > 0).then(name) / factor).round(3).cast(pl.String).str.strip_suffix(".0")
        parts += [pl.format("{} {}", number, pl.lit(noun)).str.replace("^1 (.+)s$", "1 ${1}")] if name in keys else []
    parts += [pl.format("{} {}", pl.lit(label), pl.col(name)) for name, label in _LABELS.items() if name in keys]
    return pl.concat_str(parts, separator=", ", ignore_nulls=True).replace("", None)


def suggest_next(record: pl.LazyFrame, jobs: pl.DataFrame, at_submission: Sequence[str]) -> pl.DataFrame:
    """Return the suggestions for new jobs, a row each in their order, from jobs that ended before the first of them.

    record: the common job record. jobs: submit_s, and the user and requests that the file of new jobs names.
    """
    first_s, columns = jobs["submit_s"].min(), record.collect_schema().names()
    jobs = add_blank_columns(jobs, {"user": pl.String})
    profile = [name for name in list_profile(at_submission, columns) if name in jobs.columns]
    shared = [name for name in profile if name not in _MEMORY_COLUMNS]
    names = [name for name in dict.fromkeys((*profile, *_JOB_COLUMNS)) if name in columns]
    past = add_blank_columns(record.select(names), _OPTIONAL_COLUMNS)
    keys = jobs.select(pl.col(name).cast(dtype) for name, dtype in past.select(profile).collect_schema().items())
    is_running = (pl.col("outcome") == "running") & (pl.col("trace_end_s") <= first_s)
    past = past.filter((pl.col("end_s") < first_s) | is_running)
    past_jobs = past.join(keys.lazy().select(shared).unique(), on=shared, how="semi", nulls_equal=True).collect()
    suggestions: list[pl.Series] = []
    for contract, score_names in _SCORE_NAMES.items():
        on = profile if contract is SUGGESTED_TIME_LIMITS else shared
        rows = suggest(past_jobs, profile, contract, jobs.height)[0].select(*on, *score_names)
        matches = keys.join(rows, on=on, how="left", nulls_equal=True, maintain_order="left")
        suggestions += matches.select(*score_names).rename(score_names).get_columns()
    return pl.DataFrame(suggestions)


def compute(inputs: Inputs) -> Iterator[tuple[str, pl.DataFrame]]:
    columns = inputs.scan_as_recorded("jobs").collect_schema().names()
    profile = list_profile(inputs.settings.at_submission, columns)
    jobs = inputs.scan_as_recorded("jobs", list(dict.fromkeys((*profile, *_JOB_COLUMNS))))
    # The GPU time is in the unit of the trace, the request as recorded.
    sized = inputs.scan("jobs", ["gpu_milli", "size", "outcome", "start_s", "runtime_s", "trace_end_s"])
    jobs = pl.concat([jobs, sized.select(gpu_time=gpu_seconds_milli())], how="horizontal")
    started_jobs = jobs.filter(pl.col("outcome") != "waiting").collect()
    summary = []
    for resource, contract in (("run time", SUGGESTED_TIME_LIMITS), ("memory", SUGGESTED_MEMORY)):
        has_values = contract is SUGGESTED_TIME_LIMITS or PEAK in columns
        rows, tests = suggest(started_jobs if has_values else started_jobs.clear(), profile, contract)
        rows = contract.conform(rows)
        yield contract.name, rows
        row = {"resource": resource, "jobs": started_jobs.select(is_at_limit(resource).sum()).item()}
        n_suggested = rows.select(pl.col("^suggested_.*$").count()).item()
        counts = {"requests": rows.height, "suggested": n_suggested}
        summary.append(row | (counts | summarise_tests(tests) if has_values else {"reason": NO_PEAK}))
    yield LIMIT_ENDS.name, LIMIT_ENDS.frame(summary)
