"""The Acme traces (Shanghai AI Laboratory, 2023; Hu et al., NSDI'24): one row of a cluster's job table is one job.

Seren ran on Slurm, Kalos on Kubernetes. A trace is one of them: their populations and layouts differ, and each has a
table of its own. No attempts, placement, quota owners or reasons of failures were published, so these stay blank.
"""

from collections.abc import Mapping

import polars as pl
from ttf.engine.errors import StudyError
from ttf.formats.format_declaration import outcomes_of
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import JOB_COLUMNS, conform, ended_unrecorded, outcome_of

OUTCOMES = outcomes_of("acme")
FILES = {"seren": "trace_seren.csv", "kalos": "trace_kalos.csv"}


def jobs(source: Source) -> pl.DataFrame:
    """One row per job, in file order, with the columns of the common job record and these extras:

    workload: the type of work (Eval, Pretrain, ...); duration_s: the run time as the file gives it (Kalos counts it
    from submission); duration_differs: whether it is not end - start (blank where one of the two is not known);
    negative_queue: the job started before its submission (the queueing delay is blank then); gpu_requested_milli,
    cpu_requested_milli: what the whole job asked for, however many pods it came in. Of Kalos also fail_s, stop_s: when
    it failed, when it was stopped; uneven_pods: see `_kalos`.

    Run time and queueing delay are recomputed from submission, start and end; without start or end there is none,
    whatever fail_s or stop_s say. Raises StudyError unless exactly one of the tables seren and kalos is there.
    """
    raw = source.raw
    cluster = _cluster(raw)
    seen = ["submit_s", "start_s", "end_s"]
    requested = {"gpu_requested_milli": pl.col("gpu_milli"), "cpu_requested_milli": pl.col("cpu_milli")}
    extras = ["workload", "duration_s", "duration_differs", "negative_queue", *requested]
    # Of Seren gpu_num and cpu_num are those of the whole job, and nothing is known of its parts: one instance.
    table = raw[cluster].with_columns(**requested)
    frame, columns = table.with_columns(size=pl.lit(1, dtype=pl.Int64)), []
    if cluster == "kalos":
        seen += ["fail_s", "stop_s"]
        extras += ["fail_s", "stop_s", "uneven_pods"]
        frame, columns = _kalos(table), ["mem_mib"]
    queue_s = pl.col("start_s") - pl.col("submit_s")
    frame = frame.with_columns(
        queue_s=pl.when(queue_s >= 0).then(queue_s),
        negative_queue=(queue_s < 0).fill_null(False),
        runtime_s=pl.col("end_s") - pl.col("start_s"),
        trace_end_s=pl.max_horizontal(seen).max(),
    ).with_columns(duration_differs=pl.col("runtime_s") != pl.col("duration_s"))
    return conform(
        frame.select(
            *("job_id", "user", "submit_s", "start_s", "end_s", "queue_s", "runtime_s", "gpu_milli", "cpu_milli"),
            *("size", "trace_end_s", "file", *columns, *extras),
            outcome=ended_unrecorded(outcome_of("state", OUTCOMES), pl.col("end_s"), pl.col("trace_end_s")),
            status_raw="state",
            nodes="node_num",
        ).collect(),
        JOB_COLUMNS,
    )


FORMAT = Format(jobs=jobs)


def _cluster(raw: Mapping[str, pl.LazyFrame]) -> str:
    """Which of the two clusters the trace is of."""
    found = [name for name in FILES if name in raw]
    if len(found) == 1:
        return found[0]
    if found:
        raise StudyError(
            f"The folder of the trace holds both {' and '.join(FILES.values())}; expected one: they are two clusters. "
            "Give each a folder and a trace of its own in the registry, as acme_seren and acme_kalos have."
        )
    raise StudyError(
        f"The folder of the trace holds neither {' nor '.join(FILES.values())}; expected one of them. Put it there, or "
        "name your file under `files` of the trace in the registry, as seren or kalos."
    )


def _kalos(table: pl.LazyFrame) -> pl.LazyFrame:
    """The jobs as `size` equal pods, one on each of node_num nodes, with the requests of one pod.

    gpu_num and cpu_num are those of the whole job, memory that of one pod. Where the whole GPUs or the milli-cores do
    not divide among the pods (`uneven_pods`), equal pods would not add up to the job again: it is one instance then,
    with the memory of all its pods.
    """
    pods = pl.when(pl.col("node_num") > 0).then("node_num").otherwise(pl.lit(1, dtype=pl.Int64))
    even = (pl.col("gpu_milli") % (1000 * pods) == 0) & (pl.col("cpu_milli") % pods == 0).fill_null(True)
    size = pl.when(even).then(pods).otherwise(pl.lit(1, dtype=pl.Int64))
    return table.with_columns(
        gpu_milli=pl.col("gpu_milli") // size,
        cpu_milli=pl.col("cpu_milli") // size,
        mem_mib=pl.col("mem_mib") * (pods // size),
        size=size,
        uneven_pods=(pods > 1) & ~even,
    )
