"""Infra lives: one per attempt, ended by `infra_failure` where hardware or system software ended it, else censored.

What is laid to infrastructure, and on what ground (column `basis`, one of a trace):
- `state`: the words, exit codes and reasons of the configuration (`infra_failures`, with a default by format).
- `event`: the same, and besides every failure with a failed health check on one of its nodes near its end.
- `proxy`: nothing in the trace tells causes apart, so every failure counts, those that users caused among them.
- `component`: the unit is a piece of hardware; its failures are infrastructure's.
A run that its time limit ended is censored, unless the configuration names its word.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import polars as pl

from ttf.engine.errors import StudyError
from ttf.records.clusters import CLUSTER_COLUMNS, block_columns, with_clusters
from ttf.records.jobs import Frame, at_time_limit, conform, with_blanks
from ttf.records.lives import LONGEST, READ_OF_JOBS, first_end_s, life_columns
from ttf.records.record_contracts import LIVES_INFRA

INFRA_COLUMNS = LIVES_INFRA.schema
EVENT = "infra_failure"
# The basis where nothing tells causes apart.
PROXY = "proxy"
# What may be said of the lives that end so, by basis.
ENDED_BY = {
    "state": "ended by infrastructure",
    "event": "ended by infrastructure",
    PROXY: "failures of any cause (no cause is recorded)",
    "component": "failures of the components themselves",
}
# What `infra_lives` reads of jobs, the last four where the format has them.
INFRA_READ_OF_JOBS = (
    *(*READ_OF_JOBS, "user", "submit_s", "status_raw"),
    *("exit_code", "slurm_reason", "reason", "node_list"),
)
# A failed check counts from so long before the end of a run to so long after it, both ends included
# (Kokolis et al. 2025).
BEFORE_S, AFTER_S = 600, 300


def infra_lives(
    jobs: Frame,
    attempts: pl.DataFrame | None,
    rules: Mapping,
    events: pl.DataFrame | None = None,
    outages: pl.DataFrame | None = None,
    block_days: int | None = None,
) -> Frame:
    """One row per attempt that ran, in the attempts' order, with INFRA_COLUMNS; of a trace without attempts, per life.

    jobs: the common job record, which may be lazy where there are neither attempts nor events; attempts: of the
    format's ATTEMPT_COLUMNS, or None. rules: `infra_failures` of the configuration: states, exit_codes, reasons (lists
    of texts) and events (severities, codes). events: see `ttf.raw.extra_table_reader.health_events`; outages: of
    OUTAGES.

    life_id is the attempt's number, unit_id its job_id, so that both find it in attempts.parquet; attempt_id is as in
    PLACEMENT_COLUMNS, so that it finds its placements. submit_s is when the attempt began to wait: the job's
    submission, or the end of the attempt before. state is its status word (where only jobs have one: that of the last
    attempt). cause is what laid the end to infrastructure: the code of the health event, else the state, the exit code
    or the reason; blank where nothing did, and for a proxy. An attempt of which nobody tells how it ended is censored.

    failed_node is the node that the failure is attributed to: the one of its own that the trace names as failed
    (Slurm's FailedNode), else that of the health event, else the one that went down by `went_down`; blank where none
    tells. incident is the attempt_id of the attempt that the failure hit: of the attempts with one health event, or one
    outage, on their failed_node the one that ended nearest to it in time (of equals the first), of any other its own.
    One health event is one incident, however many attempts it ended. Both are blank for a proxy, and where the attempt
    did not end in an infra failure.
    block_days: an attempt is in the block of time in which it ended (`block_columns`), else in that of its job.
    Raises StudyError where a rule asks for something that the trace does not have.
    """
    if attempts is not None:
        first_end = first_end_of_runs(attempts)
        return pl.concat(
            infra_lives_in_blocks(lambda: [(jobs, attempts)], first_end, rules, events, outages, block_days)
        )
    runs = _runs(with_clusters(jobs), None)
    return _lives(_attributed(runs, rules, events, outages), rules, events, first_end_s(runs), block_days)


def infra_lives_in_blocks(
    blocks: Callable[[], Iterable[tuple[pl.DataFrame, pl.DataFrame]]],
    first_end: int | None,
    rules: Mapping,
    events: pl.DataFrame | None = None,
    outages: pl.DataFrame | None = None,
    block_days: int | None = None,
) -> Iterator[pl.DataFrame]:
    """The same of jobs and their attempts block by block (`blocks_with_attempts`), read anew at each call.

    first_end: `first_end_of_runs` of all attempts.
    """
    told = None
    if events is not None or outages is not None:
        # What happened to a node can end runs of several blocks: those that may be its doing are looked at together.
        may_be = pl.col("outcome").is_null() | (pl.col("outcome") == "failure")
        may_be |= pl.col("state").is_in(list(rules.get("states", [])))
        some = pl.concat(runs.filter(may_be.fill_null(True)) for runs in _runs_in(blocks()))
        told = _attributed(some, rules, events, outages).select(*_ATTRIBUTED)
    for runs in _runs_in(blocks()):
        if told is None:
            runs = _attributed(runs, rules, None, None)
        else:
            runs = runs.join(told, on="attempt_id", how="left", maintain_order="left", validate="1:1")
        yield _lives(runs, rules, events, first_end, block_days)


def first_end_of_runs(attempts: Frame) -> int | None:
    """The first end of an attempt that started."""
    return first_end_s(attempts.filter(pl.col("start_s").is_not_null()))


def _runs_in(blocks: Iterable[tuple[pl.DataFrame, pl.DataFrame]]) -> Iterator[pl.DataFrame]:
    first = 0
    for jobs, attempts in blocks:
        runs = _runs(with_clusters(jobs), attempts, first)
        if (runs["outcome"] == "waiting").any():
            raise ValueError("a run that waits has no life")
        first += attempts.height
        yield runs


# What `_attributed` finds of a run, by attempt_id.
_ATTRIBUTED = ("attempt_id", "event_code", "event_node", "event_victim", "outage_node", "outage_victim")


def _attributed(runs: Frame, rules: Mapping, events: pl.DataFrame | None, outages: pl.DataFrame | None) -> Frame:
    """The runs with the health event and the outage that the end of each is attributed to, blank where none is."""
    runs = _with_events(runs, rules, events)
    is_proxy = _basis(rules, events) == PROXY
    is_told = _cause(runs, rules).is_not_null() & pl.lit(not is_proxy)
    unnamed = pl.coalesce(_named_node(runs), "event_node").is_null()
    return _with_outages(runs, is_told & unnamed, None if is_proxy else outages)


def _lives(
    runs: Frame, rules: Mapping, events: pl.DataFrame | None, first_end: int | None, block_days: int | None
) -> Frame:
    """INFRA_COLUMNS of runs `_attributed`. first_end: the first end of any run of the trace."""
    basis = _basis(rules, events)
    failed = (pl.col("outcome") == "failure").fill_null(False) & ~at_time_limit("state")
    is_infra = failed if basis == PROXY else pl.col("cause").is_not_null()
    is_told = is_infra & pl.lit(basis != PROXY)
    named = pl.coalesce(_named_node(runs), "event_node", "outage_node")
    columns = life_columns(first_end) | {
        **{name: pl.col(name) for name in ("user", "submit_s", "start_s", "end_s", "state", "cause", "attempt_id")},
        **({} if block_days is None else block_columns(block_days)),
        "life_id": pl.col("attempt"),
        "event": pl.when(is_infra).then(pl.lit(EVENT)),
        "basis": pl.lit(basis),
        "failed_node": pl.when(is_told).then(named),
        "incident": pl.when(is_told).then(pl.coalesce("event_victim", "outage_victim", "attempt_id")),
    }
    runs = runs.with_columns(cause=_cause(runs, rules))
    return runs.with_columns(outcome=pl.col("outcome").fill_null("unknown")).select(
        columns[name].cast(dtype).alias(name) for name, dtype in INFRA_COLUMNS.items()
    )


def with_infra_failures(attempts: pl.DataFrame, rules: Mapping, events: pl.DataFrame | None = None) -> pl.DataFrame:
    """The attempts with `infra_failure`: whether their life among the infra lives ends so, by the same rules.

    attempts: with a state of their own; others are returned as they are. An attempt that never started has no life;
    where nothing tells causes apart, infra_failure is blank.
    """
    if "state" not in attempts.columns:
        return attempts
    if _basis(rules, events) == PROXY:
        return attempts.with_columns(infra_failure=pl.lit(None, pl.Boolean))
    reason = {"slurm_reason": "reason"} if "slurm_reason" in attempts.columns else {}
    runs = _with_events(attempts.with_row_index("attempt_id").rename(reason), rules, events)
    ended = runs.select((_cause(runs, rules).is_not_null() & pl.col("start_s").is_not_null()).alias("infra_failure"))
    return attempts.with_columns(ended.to_series())


def infra_lives_of_components(lives: pl.DataFrame, causes: Sequence[str]) -> pl.DataFrame:
    """The lives of components as they are, with INFRA_COLUMNS first and their own columns after.

    causes: the Boolean columns that tell a failure's causes; cause names all that are true, with commas between.
    """
    named = [pl.when(pl.col(cause).fill_null(False)).then(pl.lit(cause)) for cause in causes]
    failed = pl.col("event") == "failure"
    cause = pl.concat_str(*named, separator=",", ignore_nulls=True) if named else pl.lit("")
    frame = lives.with_columns(
        event=pl.when(failed).then(pl.lit(EVENT)),
        cause=pl.when(failed & (cause != "")).then(cause),
        basis=pl.lit("component"),
    )
    return conform(frame, INFRA_COLUMNS)


def attributed(runs: pl.DataFrame, events: pl.DataFrame, severities: Sequence[str] = ()) -> pl.DataFrame:
    """run, code, node, place, apart_s: the health event that a run's end is attributed to, of the runs that have one.

    Sorted by run. place: the row of the event; apart_s: from the event to the run's end, without its sign.
    runs: run (a number), end_s (Int64 s), node_list (List[String]); events: node, time_s, code, severity. An event
    counts from BEFORE_S before the end to AFTER_S after it, on any of the run's nodes. Of several the most severe
    counts, by the order of `severities` (as listed, the first most severe; all alike where nothing is listed), then the
    earliest, then the first code by name, then the first row.
    """
    rank = {severity: place for place, severity in enumerate(severities)}
    return (
        near(runs, events)
        .with_columns(rank=pl.col("severity").replace_strict(rank, default=len(rank), return_dtype=pl.Int64))
        .sort("run", "rank", "time_s", "code", "place")
        .unique("run", keep="first", maintain_order=True)
        .select("run", "code", "node", "place", "apart_s")
    )


def went_down(runs: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """run, node, place, apart_s: the node of a run's that went down near its end, of the runs that have one.

    runs: as of `attributed`; outages: of OUTAGES, in which place is the row. Unplanned outages count, of which the
    start was seen, from BEFORE_S before the end of the run to AFTER_S after it: of several the earliest. Where several
    nodes went down in that second nobody knows which of them it was, and the run has none.
    """
    starts = outages.with_row_index("place").filter(~pl.col("planned"), "counted", pl.col("node").is_not_null())
    found = near(runs, starts.select("place", "node", time_s="start_s"))
    first = found.filter(pl.col("time_s") == pl.col("time_s").min().over("run"))
    alone = first.filter(pl.col("node").n_unique().over("run") == 1).sort("run", "place")
    return alone.unique("run", keep="first", maintain_order=True).select("run", "node", "place", "apart_s")


def near(runs: pl.DataFrame, events: pl.DataFrame, before_s: int = BEFORE_S, after_s: int = AFTER_S) -> pl.DataFrame:
    """Each pair of a run and an event on one of its nodes, from before_s before the run's end to after_s after it: run,

    end_s, apart_s and the columns of the event. runs, events: see `attributed`; place: the row where there is none.
    """
    # Two moments at most a window apart are in the same bucket or in neighbours: an exact join, not a product.
    width = before_s + after_s + 1
    of_events = events if "place" in events.columns else events.with_row_index("place")
    of_events = of_events.with_columns(bucket=pl.col("time_s") // width)
    on_nodes = (
        runs.drop_nulls(["end_s", "node_list"])
        .select("run", "end_s", node="node_list")
        .explode("node")
        .join(events.select("node").unique(), on="node", how="semi")
        .with_columns(
            bucket=pl.concat_list((pl.col("end_s") - before_s) // width, (pl.col("end_s") + after_s) // width)
        )
        .explode("bucket")
        # Where both are one bucket, or a node is listed twice.
        .unique()
    )
    apart = pl.col("time_s") - pl.col("end_s")
    found = on_nodes.join(of_events, on=["node", "bucket"]).drop("bucket")
    return found.filter(apart.is_between(-before_s, after_s)).with_columns(apart_s=apart.abs())


def _runs(jobs: Frame, attempts: pl.DataFrame | None, first: int = 0) -> Frame:
    """The runs in the form of jobs, with attempt, attempt_id, state; exit_code, reason, node_list if there are any.

    first: the attempt_id of the first attempt.
    """
    if attempts is None:
        runs = (
            jobs.with_row_index("attempt_id")
            .filter(pl.col("outcome") != "waiting")
            .with_columns(attempt=pl.lit(0), state="status_raw")
        )
    else:
        of_jobs = ["trace", "user", "account", "gpu_type", "task", "trace_end_s", *CLUSTER_COLUMNS]
        cores = (pl.col("cpu_milli") * pl.col("size")).alias("cpu_milli")
        known = jobs.select("job_id", *of_jobs, cores, job_submit_s="submit_s", status_raw="status_raw")
        # Attempts stand by job and in sequence.
        before, is_first = pl.col("end_s").shift(1), pl.col("job_id").ne_missing(pl.col("job_id").shift(1))
        runs = (
            attempts.drop("trace", "cpu_milli", strict=False)
            .with_row_index("attempt_id", offset=first)
            .join(known, on="job_id", how="left", maintain_order="left", validate="m:1")
            .with_columns(
                submit_s=pl.when(is_first).then("job_submit_s").otherwise(before),
                size=pl.lit(1, dtype=pl.Int64),
                state="state"
                if "state" in attempts.columns
                else pl.when(pl.col("outcome").is_not_null()).then("status_raw"),
            )
            .filter(pl.col("start_s").is_not_null())
        )
    there = runs.collect_schema().names()
    reason = next((name for name in ("slurm_reason", "reason") if name in there), None)
    return with_blanks(runs.rename({reason: "reason"}) if reason else runs, LONGEST)


def _told_causes(runs: Frame, rules: Mapping) -> list[pl.Expr]:
    """The state, the exit code and the reason of each run, where the rules lay it to infrastructure."""
    may_count = (pl.col("outcome").is_null() | (pl.col("outcome") == "failure")) & ~at_time_limit("state")
    there = runs.collect_schema().names()
    causes = []
    for key, column, counts in (
        ("states", "state", pl.lit(True)),
        ("exit_codes", "exit_code", may_count),
        ("reasons", "reason", may_count),
    ):
        if not rules.get(key):
            continue
        if column not in there:
            raise StudyError(
                f"infra_failures.{key} is set, but the trace has no {key.replace('_', ' ')}. Give the key to the "
                f"traces that have, under registry.<name>.infra_failures, or leave it out."
            )
        named = pl.col(column).is_in(list(rules[key])) & counts
        causes.append(pl.when(named).then(column))
    return causes


def _cause(runs: Frame, rules: Mapping) -> pl.Expr:
    """What attributes the end of a run to infrastructure: a health event, its state, exit code or reason."""
    return pl.coalesce("event_code", *_told_causes(runs, rules))


def _named_node(runs: Frame) -> pl.Expr:
    """The node that the trace names as failed, where it is one of the run's."""
    if "failed_node" not in runs.collect_schema():
        return pl.lit(None, dtype=pl.String)
    is_of_run = pl.col("node_list").list.contains(pl.col("failed_node"))
    return pl.when(is_of_run.fill_null(True)).then("failed_node")


def _with_events(runs: Frame, rules: Mapping, events: pl.DataFrame | None) -> Frame:
    """The runs with the health event that the end of a failed one is attributed to, blank where there is none:

    event_code; event_node; event_victim: the attempt_id of the run that it hit, blank where the trace names another
    node as failed.
    """
    if events is None:
        return with_blanks(runs, {"event_code": pl.String, "event_node": pl.String, "event_victim": pl.UInt32})
    if "node_list" not in runs.columns:
        raise StudyError(
            "health_events are given, but the trace does not say on which nodes a run was: no event can be attributed "
            "to it. Leave health_events out of its entry in the registry."
        )
    if runs.schema["node_list"] == pl.String:
        runs = runs.with_columns(pl.col("node_list").str.split(","))
    wanted = rules.get("events", {})
    for key, column in (("severities", "severity"), ("codes", "code")):
        if wanted.get(key):
            events = events.filter(pl.col(column).is_in(list(wanted[key])))
    # A run of Philly that was tried again has no outcome of its own: it did not succeed.
    state = pl.col("state")
    failed = (pl.col("outcome") == "failure") | (pl.col("outcome").is_null() & pl.col("end_s").is_not_null())
    named = state.is_in(list(rules.get("states", []))).fill_null(False)
    failed = runs.filter((failed & ~at_time_limit("state")) | named).with_columns(
        run="attempt_id", named_node=_named_node(runs)
    )
    found = attributed(failed.select("run", "end_s", "node_list"), events, wanted.get("severities", []))
    found = found.join(failed.select("run", "named_node"), on="run", how="left", maintain_order="left")
    hit = found.filter(pl.col("named_node").is_null() | (pl.col("named_node") == pl.col("node")))
    hit = hit.select("run", event_victim=_victim())
    found = found.join(hit, on="run", how="left").select("run", "event_victim", event_code="code", event_node="node")
    return runs.join(found, left_on="attempt_id", right_on="run", how="left", maintain_order="left")


def _with_outages(runs: Frame, are_looked_at: pl.Expr, outages: pl.DataFrame | None) -> Frame:
    """The runs with outage_node, which `went_down`, and outage_victim, the run that its outage hit."""
    if outages is None or "node_list" not in runs.collect_schema():
        return with_blanks(runs, {"outage_node": pl.String, "outage_victim": pl.UInt32})
    told = runs.filter(are_looked_at).select("end_s", "node_list", run="attempt_id")
    if told.schema["node_list"] == pl.String:
        told = told.with_columns(pl.col("node_list").str.split(","))
    found = went_down(told, outages).select("run", outage_node="node", outage_victim=_victim())
    return runs.join(found, left_on="attempt_id", right_on="run", how="left", maintain_order="left")


def _victim() -> pl.Expr:
    """Of the runs that one event ended, the one that ended nearest to it."""
    return pl.col("run").sort_by("apart_s", "run").first().over("place")


def _basis(rules: Mapping, events: pl.DataFrame | None) -> str:
    if events is not None:
        return "event"
    return "state" if any(rules.get(key) for key in ("states", "exit_codes", "reasons")) else PROXY
