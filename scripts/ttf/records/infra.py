"""Infrastructure durations: one per attempt, ended by an infrastructure failure (`infra_failure`) or censored.

Rules that attribute an end to infrastructure (column `basis`, one per trace):
- `state`: the words, exit codes and reasons of the configuration (`infra_failures`, with a default by format).
- `event`: the same, and every failure with a failed health check on one of its nodes near its end, or with an error in
  a node's log to which `judge_node_errors` attributes it.
- `proxy`: the trace has no causes, so every failure counts, including those of users.
- `component`: the unit is a piece of hardware; its failures are infrastructure failures.
A run ended by its time limit is censored, unless the configuration lists its word.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import polars as pl

from ttf.engine.errors import StudyError
from ttf.records.clusters import CLUSTER_COLUMNS, add_clusters, block_columns
from ttf.records.durations import JOB_DURATION_COLUMNS, LONGEST, duration_columns, first_end_s
from ttf.records.jobs import Frame, add_blank_columns, conform, is_at_time_limit
from ttf.records.record_contracts import DURATIONS_INFRA

INFRA_COLUMNS = DURATIONS_INFRA.schema
EVENT = "infra_failure"
# The basis without recorded causes.
PROXY = "proxy"
# Description of these ends, by basis.
ENDED_BY = {
    "state": "ended by infrastructure",
    "event": "ended by infrastructure",
    PROXY: "failures of any cause (no cause is recorded)",
    "component": "failures of the components themselves",
}
# Columns of jobs that `infra_durations` reads, the last four if the format has them.
INFRA_JOB_COLUMNS = (
    *(*JOB_DURATION_COLUMNS, "user", "submit_s", "status_raw"),
    *("exit_code", "slurm_reason", "reason", "node_list"),
)
# A failed check counts from BEFORE_S before the end of a run to AFTER_S after it, inclusive (Kokolis et al. 2025).
BEFORE_S, AFTER_S = 600, 300


def infra_durations(
    jobs: Frame,
    attempts: pl.DataFrame | None,
    rules: Mapping,
    events: pl.DataFrame | None = None,
    outages: pl.DataFrame | None = None,
    block_days: int | None = None,
    errors: pl.DataFrame | None = None,
) -> Frame:
    """Return one row per attempt that ran, in order, with INFRA_COLUMNS; without attempts, one per job that ran.

    duration_id is the attempt's number and unit_id its job_id, which identify it in attempts.parquet. attempt_id is as
    in PLACEMENT_COLUMNS, which identifies its placements. submit_s is when the attempt began to wait: the job's
    submission, or the end of the attempt before. state is its status word; if only jobs have one, the last attempt has
    the job's. cause is what attributes the end to infrastructure: the code of the health event, else the state, the
    exit code or the reason; blank for none, and for a proxy. An attempt with an unknown end is censored.

    failed_node is the node to which the failure is attributed: its own node that the trace names as failed (Slurm's
    FailedNode), else that of the health event, else the one that went down by `attribute_to_outages`; blank if none is
    known. incident is the attempt_id of the attempt that the failure hit. Among attempts with one health event, or one
    outage, on their failed_node, it is the one that ended nearest in time (of equals the first); otherwise its own. One
    health event is one incident, for any number of attempts. Both are blank for a proxy, and without an infrastructure
    failure.

    Parameters
    ----------
    jobs: the common job record; a lazy one stays lazy
    attempts: columns of the format's attempts, or None
    rules: `infra_failures` of the configuration
        states, exit_codes, reasons (lists of texts) and events (severities, codes). Raises StudyError for a key without
        its column in the trace.
    events, outages: see `ttf.raw.extra_table_reader.health_events`; OUTAGES
    block_days: length of the blocks of time in which attempts end (`block_columns`); None: the block of the job
    errors: `attribute_to_errors`; a health event counts first
    """
    if attempts is not None:
        block, first_end = (jobs.lazy().collect(), attempts), first_attempt_end(attempts)
        settings = rules, events, outages, block_days, errors
        durations = pl.concat(infra_durations_in_blocks(lambda: [block], first_end, *settings))
        return durations if isinstance(jobs, pl.DataFrame) else durations.lazy()
    runs = _make_job_runs(add_clusters(jobs))
    basis = _choose_basis(rules, events, errors)
    return _make_durations(
        _attribute_ends(runs, rules, events, outages, errors), rules, basis, first_end_s(runs), block_days
    )


def infra_durations_in_blocks(
    blocks: Callable[[], Iterable[tuple[pl.DataFrame, pl.DataFrame]]],
    first_end: int | None,
    rules: Mapping,
    events: pl.DataFrame | None = None,
    outages: pl.DataFrame | None = None,
    block_days: int | None = None,
    errors: pl.DataFrame | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield `infra_durations` of jobs and attempts by block (`read_blocks_with_attempts`), read again at each call.

    first_end: `first_attempt_end` of all attempts.
    """
    attributions, basis = None, _choose_basis(rules, events, errors)
    if events is not None or outages is not None or errors is not None:
        # An event on a node can end runs of several blocks, so all candidates are compared together.
        is_candidate = pl.col("outcome").is_null() | (pl.col("outcome") == "failure")
        is_candidate |= pl.col("state").is_in(list(rules.get("states", [])))
        candidates = pl.concat(runs.filter(is_candidate.fill_null(True)) for runs in _yield_runs_by_block(blocks()))
        attributions = _attribute_ends(candidates, rules, events, outages, errors).select(*_ATTRIBUTION_COLUMNS)
    for runs in _yield_runs_by_block(blocks()):
        if attributions is None:
            runs = _attribute_ends(runs, rules, None, None, None)
        else:
            runs = runs.join(attributions, on="attempt_id", how="left", maintain_order="left", validate="1:1")
        yield _make_durations(runs, rules, basis, first_end, block_days)


def first_attempt_end(attempts: Frame) -> int | None:
    """Return the first end of an attempt that started."""
    return first_end_s(attempts.filter(pl.col("start_s").is_not_null()))


def _yield_runs_by_block(blocks: Iterable[tuple[pl.DataFrame, pl.DataFrame]]) -> Iterator[pl.DataFrame]:
    """Yield the runs of each block (jobs, attempts); attempt_id counts over all blocks."""
    first = 0
    for jobs, attempts in blocks:
        runs = _make_attempt_runs(add_clusters(jobs), attempts, first)
        if (runs["outcome"] == "waiting").any():
            raise ValueError("a waiting run has no duration")
        first += attempts.height
        yield runs


# Columns that `_attribute_ends` adds to a run, by attempt_id.
_ATTRIBUTION_COLUMNS = ("attempt_id", "event_code", "event_node", "event_victim", "outage_node", "outage_victim")


def _attribute_ends(
    runs: Frame,
    rules: Mapping,
    events: pl.DataFrame | None,
    outages: pl.DataFrame | None,
    errors: pl.DataFrame | None,
) -> Frame:
    runs = _add_errors(_add_events(runs, rules, events), errors)
    is_proxy = _choose_basis(rules, events, errors) == PROXY
    has_cause = _first_cause(runs, rules).is_not_null() & pl.lit(not is_proxy)
    has_no_node = pl.coalesce(_recorded_node(runs), "event_node").is_null()
    return _add_outages(runs, has_cause & has_no_node, None if is_proxy else outages)


def _make_durations(runs: Frame, rules: Mapping, basis: str, first_end: int | None, block_days: int | None) -> Frame:
    """Return INFRA_COLUMNS of runs of `_attribute_ends`. first_end: first end of any run of the trace."""
    blocks = {} if block_days is None else block_columns(block_days)
    if blocks:
        # Blocks that do not count for the jobs of a trace do not count for its attempts.
        is_counted = pl.col("block").is_null() | pl.col("block_by").is_not_null()
        blocks["block_by"] = pl.when(is_counted).then(blocks["block_by"])
    is_failed = (pl.col("outcome") == "failure").fill_null(False) & ~is_at_time_limit("state")
    is_infra = is_failed if basis == PROXY else pl.col("cause").is_not_null()
    is_attributed = is_infra & pl.lit(basis != PROXY)
    failed_node = pl.coalesce(_recorded_node(runs), "event_node", "outage_node")
    columns = duration_columns(first_end) | {
        **{name: pl.col(name) for name in ("user", "submit_s", "start_s", "end_s", "state", "cause", "attempt_id")},
        **blocks,
        "duration_id": pl.col("attempt"),
        "event": pl.when(is_infra).then(pl.lit(EVENT)),
        "basis": pl.lit(basis),
        "failed_node": pl.when(is_attributed).then(failed_node),
        "incident": pl.when(is_attributed).then(pl.coalesce("event_victim", "outage_victim", "attempt_id")),
    }
    runs = runs.with_columns(cause=_first_cause(runs, rules), outcome=pl.col("outcome").fill_null("unknown"))
    return runs.select(columns[name].cast(dtype).alias(name) for name, dtype in INFRA_COLUMNS.items())


def add_infra_failure(attempts: pl.DataFrame, rules: Mapping, events: pl.DataFrame | None = None) -> pl.DataFrame:
    """Add `infra_failure` to the attempts: whether they end in an infrastructure failure, as in `infra_durations`.

    attempts: with their own state; others are returned unchanged. An attempt that never started did not fail. Without
    recorded causes infra_failure is blank.
    """
    if "state" not in attempts.columns:
        return attempts
    if _choose_basis(rules, events) == PROXY:
        return attempts.with_columns(infra_failure=pl.lit(None, pl.Boolean))
    runs = _add_events(_rename_reason(attempts.with_row_index("attempt_id")), rules, events)
    is_infra = _first_cause(runs, rules).is_not_null() & pl.col("start_s").is_not_null()
    return attempts.with_columns(runs.select(infra_failure=is_infra).to_series())


def infra_durations_of_components(durations: pl.DataFrame, causes: Sequence[str]) -> pl.DataFrame:
    """Return the durations of components unchanged, with INFRA_COLUMNS first and their own columns after.

    causes: Boolean columns of a failure's causes; cause joins all that are true with commas.
    """
    cause_texts = [pl.when(pl.col(cause).fill_null(False)).then(pl.lit(cause)) for cause in causes]
    is_failed = pl.col("event") == "failure"
    cause = pl.concat_str(*cause_texts, separator=",", ignore_nulls=True) if cause_texts else pl.lit("")
    frame = durations.with_columns(
        event=pl.when(is_failed).then(pl.lit(EVENT)),
        cause=pl.when(is_failed & (cause != "")).then(cause),
        basis=pl.lit("component"),
    )
    return conform(frame, INFRA_COLUMNS)


def attribute_to_events(runs: pl.DataFrame, events: pl.DataFrame, severities: Sequence[str] = ()) -> pl.DataFrame:
    """Return run, code, node, place, apart_s: the health event of a run's end, for the runs with one.

    Sorted by run. place: row of the event. apart_s: absolute time between the event and the run's end. runs: run (a
    number), end_s (Int64 s), node_list (List[String]). events: node, time_s, code, severity. An event counts from
    BEFORE_S before the end to AFTER_S after it, on any of the run's nodes. Of several, the most severe counts
    (`severities`: most severe first), then the earliest, the first code by name, the first row.
    """
    rank = {severity: position for position, severity in enumerate(severities)}
    return (
        pair_near_events(runs, events)
        .with_columns(rank=pl.col("severity").replace_strict(rank, default=len(rank), return_dtype=pl.Int64))
        .sort("run", "rank", "time_s", "code", "place")
        .unique("run", keep="first", maintain_order=True)
        .select("run", "code", "node", "place", "apart_s")
    )


def attribute_to_outages(runs: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """Return run, node, place, apart_s: the node of a run that went down near its end, for the runs with one.

    runs: as for `attribute_to_events`. outages: of OUTAGES; place: row of the outage. Unplanned outages with an
    observed start count, from BEFORE_S before the end of the run to AFTER_S after it: of several the earliest. If
    several nodes went down in that second, the node is unknown, and the run has none.
    """
    starts = outages.with_row_index("place").filter(~pl.col("planned"), "counted", pl.col("node").is_not_null())
    pairs = pair_near_events(runs, starts.select("place", "node", time_s="start_s"))
    earliest = pairs.filter(pl.col("time_s") == pl.col("time_s").min().over("run"))
    unambiguous = earliest.filter(pl.col("node").n_unique().over("run") == 1).sort("run", "place")
    return unambiguous.unique("run", keep="first", maintain_order=True).select("run", "node", "place", "apart_s")


def attribute_to_errors(attributions: pl.DataFrame) -> pl.DataFrame:
    """Return attempt_id, error_code, error_node, error_victim of the failures attributed to errors of nodes.

    attributions: of ERROR_ATTRIBUTIONS. Errors that an application can cause are no infrastructure failures.
    error_victim: of the runs that one error ended, the one that ended nearest to it.
    """
    nearest = pl.col("attempt_id").sort_by("apart_s", "attempt_id").first().over("node", "code", "error_s")
    infra = attributions.filter(~pl.col("application"))
    return infra.select("attempt_id", error_victim=nearest, error_code="code", error_node="node")


def pair_near_events(
    runs: pl.DataFrame, events: pl.DataFrame, before_s: int = BEFORE_S, after_s: int = AFTER_S
) -> pl.DataFrame:
    """Return each pair of a run and an event on one of its nodes, near the run's end.

    The event lies from before_s before the end to after_s after it. Columns: run, end_s, apart_s and the columns of the
    event. runs, events: see `attribute_to_events`; `place`, the row of an event, is added if missing.
    """
    # Moments at most a window apart are in the same or neighbouring buckets: an exact join, not a product.
    width = before_s + after_s + 1
    bucketed = events if "place" in events.columns else events.with_row_index("place")
    bucketed = bucketed.with_columns(bucket=pl.col("time_s") // width)
    run_nodes = (
        runs.drop_nulls(["end_s", "node_list"])
        .select("run", "end_s", node="node_list")
        .explode("node")
        .join(events.select("node").unique(), on="node", how="semi")
        .with_columns(
            bucket=pl.concat_list((pl.col("end_s") - before_s) // width, (pl.col("end_s") + after_s) // width)
        )
        .explode("bucket")
        # Duplicates if both buckets are equal, or a node is listed twice.
        .unique()
    )
    offset_s = pl.col("time_s") - pl.col("end_s")
    pairs = run_nodes.join(bucketed, on=["node", "bucket"]).drop("bucket")
    return pairs.filter(offset_s.is_between(-before_s, after_s)).with_columns(apart_s=offset_s.abs())


def find_first_outages(
    ends: pl.DataFrame, outages: pl.DataFrame, before_s: int = BEFORE_S, after_s: int = AFTER_S
) -> pl.DataFrame:
    """Return, by run, the first outage of its failed node that begins near its end.

    ends: run, end_s, failed_node. outages: node, time_s (its start), and the columns to return beside run and time_s.
    """
    runs = ends.drop_nulls("failed_node").select("run", "end_s", node_list=pl.concat_list("failed_node"))
    pairs = pair_near_events(runs, outages.drop_nulls("node"), before_s, after_s)
    return pairs.sort("run", "time_s", "place").unique("run", keep="first").drop("end_s", "node", "place", "apart_s")


def _make_job_runs(jobs: Frame) -> Frame:
    """Return jobs as runs, with attempt, attempt_id, state, and optional exit_code, reason, node_list."""
    started = jobs.with_row_index("attempt_id").filter(pl.col("outcome") != "waiting")
    return _rename_reason(started.with_columns(attempt=pl.lit(0), state="status_raw"))


def _make_attempt_runs(jobs: pl.DataFrame, attempts: pl.DataFrame, first: int) -> pl.DataFrame:
    """Return the started attempts with the columns of jobs. first: attempt_id of the first row of `attempts`."""
    job_columns = ["trace", "user", "account", "gpu_type", "task", "trace_end_s", *CLUSTER_COLUMNS]
    cores = (pl.col("cpu_milli") * pl.col("size")).alias("cpu_milli")
    job_values = jobs.select("job_id", *job_columns, cores, job_submit_s="submit_s", status_raw="status_raw")
    # Attempts are sorted by job and sequence.
    previous_end_s, is_first = pl.col("end_s").shift(1), pl.col("job_id").ne_missing(pl.col("job_id").shift(1))
    last_state = pl.when(pl.col("outcome").is_not_null()).then("status_raw")
    runs = (
        attempts.drop("trace", "cpu_milli", strict=False)
        .with_row_index("attempt_id", offset=first)
        .join(job_values, on="job_id", how="left", maintain_order="left", validate="m:1")
        .with_columns(
            submit_s=pl.when(is_first).then("job_submit_s").otherwise(previous_end_s),
            size=pl.lit(1, dtype=pl.Int64),
            state="state" if "state" in attempts.columns else last_state,
        )
    )
    return _rename_reason(runs.filter(pl.col("start_s").is_not_null()))


def _rename_reason(runs: Frame) -> Frame:
    """Rename slurm_reason to reason, and add the missing columns of LONGEST."""
    return add_blank_columns(runs.rename({"slurm_reason": "reason"}, strict=False), LONGEST)


def _recorded_causes(runs: Frame, rules: Mapping) -> list[pl.Expr]:
    """Return the state, the exit code and the reason of each run, if the rules attribute it to infrastructure."""
    is_possible = (pl.col("outcome").is_null() | (pl.col("outcome") == "failure")) & ~is_at_time_limit("state")
    columns = runs.collect_schema().names()
    causes: list[pl.Expr] = []
    for key, column, condition in (
        ("states", "state", pl.lit(True)),
        ("exit_codes", "exit_code", is_possible),
        ("reasons", "reason", is_possible),
    ):
        if not rules.get(key):
            continue
        if column not in columns:
            raise StudyError(
                f"infra_failures.{key} is set, but the trace has no {key.replace('_', ' ')}. Set the key only for "
                f"traces that have them, under registry.<name>.infra_failures, or remove it."
            )
        is_listed = pl.col(column).is_in(list(rules[key])) & condition
        causes.append(pl.when(is_listed).then(column))
    return causes


def _first_cause(runs: Frame, rules: Mapping) -> pl.Expr:
    """Return the cause of each run's end: the code of its event, else the first of _recorded_causes."""
    return pl.coalesce("event_code", *_recorded_causes(runs, rules))


def _recorded_node(runs: Frame) -> pl.Expr:
    """Return the node that the trace names as failed, unless the run did not use it."""
    if "failed_node" not in runs.collect_schema():
        return pl.lit(None, dtype=pl.String)
    is_own_node = pl.col("node_list").list.contains(pl.col("failed_node"))
    return pl.when(is_own_node.fill_null(True)).then("failed_node")


def _add_events(runs: Frame, rules: Mapping, events: pl.DataFrame | None) -> Frame:
    """Add the health event to which the end of a failed run is attributed: event_code, event_node, event_victim.

    event_victim: attempt_id of the run that it hit, blank if the trace names another node as failed.
    """
    if events is None:
        return add_blank_columns(runs, {"event_code": pl.String, "event_node": pl.String, "event_victim": pl.UInt32})
    schema = runs.collect_schema()
    if "node_list" not in schema:
        raise StudyError(
            "health_events is set, but the trace does not record the nodes of a run, so no event can be attributed to "
            "it. Remove health_events from its entry in the registry."
        )
    if schema["node_list"] == pl.String:
        runs = runs.with_columns(pl.col("node_list").str.split(","))
    event_rules = rules.get("events", {})
    for key, column in (("severities", "severity"), ("codes", "code")):
        if event_rules.get(key):
            events = events.filter(pl.col(column).is_in(list(event_rules[key])))
    # A run of Philly that was retried has no outcome of its own: it did not succeed.
    is_failed = (pl.col("outcome") == "failure") | (pl.col("outcome").is_null() & pl.col("end_s").is_not_null())
    is_listed = pl.col("state").is_in(list(rules.get("states", []))).fill_null(False)
    failed = runs.lazy().filter((is_failed & ~is_at_time_limit("state")) | is_listed).collect()
    failed = failed.with_columns(run="attempt_id", own_node=_recorded_node(runs))
    matches = attribute_to_events(failed.select("run", "end_s", "node_list"), events, event_rules.get("severities", []))
    matches = matches.join(failed.select("run", "own_node"), on="run", how="left", maintain_order="left")
    victims = matches.filter(pl.col("own_node").is_null() | (pl.col("own_node") == pl.col("node")))
    victims = victims.select("run", event_victim=_nearest_run())
    matches = matches.join(victims, on="run", how="left")
    return _join_by_run(runs, matches.select("run", "event_victim", event_code="code", event_node="node"))


def _add_errors(runs: Frame, errors: pl.DataFrame | None) -> Frame:
    """Use the error of a node's log for runs without a health event; see `attribute_to_errors`."""
    if errors is None:
        return runs
    has_event, own_node = pl.col("event_code").is_not_null(), _recorded_node(runs)
    is_other_node = (own_node != pl.col("error_node")).fill_null(False)
    return (
        _join_by_run(runs, errors.rename({"attempt_id": "run"}))
        .with_columns(
            event_code=pl.coalesce("event_code", "error_code"),
            event_node=pl.coalesce("event_node", "error_node"),
            event_victim=pl.when(has_event).then("event_victim").when(~is_other_node).then("error_victim"),
        )
        .drop("error_code", "error_node", "error_victim")
    )


def _add_outages(runs: Frame, is_candidate: pl.Expr, outages: pl.DataFrame | None) -> Frame:
    """Add outage_node and outage_victim of the candidates: the node that went down, and the attempt_id that it hit."""
    if outages is None or "node_list" not in runs.collect_schema():
        return add_blank_columns(runs, {"outage_node": pl.String, "outage_victim": pl.UInt32})
    candidates = runs.lazy().filter(is_candidate).select("end_s", "node_list", run="attempt_id").collect()
    if candidates.schema["node_list"] == pl.String:
        candidates = candidates.with_columns(pl.col("node_list").str.split(","))
    matches = attribute_to_outages(candidates, outages)
    return _join_by_run(runs, matches.select("run", outage_node="node", outage_victim=_nearest_run()))


def _join_by_run(runs: Frame, matches: pl.DataFrame) -> Frame:
    lazy = runs.lazy().join(
        matches.lazy(), left_on="attempt_id", right_on="run", how="left", maintain_order="left", validate="1:1"
    )
    return lazy.collect() if isinstance(runs, pl.DataFrame) else lazy


def _nearest_run() -> pl.Expr:
    """Return, of the runs with one event or outage (`place`), the one that ended nearest to it."""
    return pl.col("run").sort_by("apart_s", "run").first().over("place")


def _choose_basis(rules: Mapping, events: pl.DataFrame | None, errors: pl.DataFrame | None = None) -> str:
    # Logs without an attributed failure tell nothing about causes.
    if events is not None or (errors is not None and errors.height):
        return "event"
    return "state" if any(rules.get(key) for key in ("states", "exit_codes", "reasons")) else PROXY
