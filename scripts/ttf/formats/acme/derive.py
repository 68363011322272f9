"""Derive the jobs of the Acme traces (Shanghai AI Laboratory, 2023; Hu et al., NSDI'24): a row is a job.

Seren ran on Slurm, Kalos on Kubernetes. A trace is one of them, because their populations and tables differ. Attempts,
placements, quota owners and reasons of failures were not published, so they stay blank.
"""

from collections.abc import Mapping

import polars as pl
from ttf.engine.errors import StudyError
from ttf.formats.format_declaration import resolve_outcomes
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import JOB_COLUMNS, conform, map_outcome, mark_unrecorded_ends

FILES = {"seren": "trace_seren.csv", "kalos": "trace_kalos.csv"}


def jobs(source: Source) -> pl.DataFrame:
    """Return one row per job, in file order, with the columns of the common job record and some extras.

    workload: the type of work (Eval, Pretrain, ...); duration_s: the run time in the file (Kalos counts it from
    submission); duration_differs: whether it is not end - start (blank if either is unknown); negative_queue: the job
    started before its submission, and the queueing delay is blank; gpu_requested_milli, cpu_requested_milli: the
    request of the whole job, over all pods. For Kalos also fail_s, stop_s: when it failed, when it was stopped;
    uneven_pods: see `_split_into_pods`.

    Run time and queueing delay are recomputed from submission, start and end. They are blank without start or end, even
    if there is a fail_s or stop_s. Raises StudyError unless exactly one of the tables seren and kalos is present.
    """
    raw = source.raw
    cluster = _detect_cluster(raw)
    time_columns = ["submit_s", "start_s", "end_s"]
    requests = {"gpu_requested_milli": pl.col("gpu_milli"), "cpu_requested_milli": pl.col("cpu_milli")}
    extras = ["workload", "duration_s", "duration_differs", "negative_queue", *requests]
    # In Seren, gpu_num and cpu_num are totals of the job, and its parts are unknown: one instance.
    table = raw[cluster].with_columns(**requests)
    frame, columns = table.with_columns(size=pl.lit(1, dtype=pl.Int64)), []
    if cluster == "kalos":
        time_columns += ["fail_s", "stop_s"]
        extras += ["fail_s", "stop_s", "uneven_pods"]
        frame, columns = _split_into_pods(table), ["mem_mib"]
    outcomes, queue_s = resolve_outcomes("acme", source.meaning), pl.col("start_s") - pl.col("submit_s")
    frame = frame.with_columns(
        queue_s=pl.when(queue_s >= 0).then(queue_s),
        negative_queue=(queue_s < 0).fill_null(False),
        runtime_s=pl.col("end_s") - pl.col("start_s"),
        trace_end_s=pl.max_horizontal(time_columns).max(),
    ).with_columns(duration_differs=pl.col("runtime_s") != pl.col("duration_s"))
    return conform(
        frame.select(
            *("job_id", "user", "submit_s", "start_s", "end_s", "queue_s", "runtime_s", "gpu_milli", "cpu_milli"),
            *("size", "trace_end_s", "file", *columns, *extras),
            outcome=mark_unrecorded_ends(map_outcome("state", outcomes), pl.col("end_s"), pl.col("trace_end_s")),
            status_raw="state",
            nodes="node_num",
        ).collect(),
        JOB_COLUMNS,
    )


FORMAT = Format(jobs=jobs)


def _detect_cluster(raw: Mapping[str, pl.LazyFrame]) -> str:
    """Return `seren` or `kalos`: the raw table that the trace has. Raises StudyError unless it has exactly one."""
    clusters = [name for name in FILES if name in raw]
    if len(clusters) == 1:
        return clusters[0]
    if clusters:
        raise StudyError(
            f"The folder of the trace holds both {' and '.join(FILES.values())}; expected one: they are two clusters. "
            "Give each its own folder and its own trace in the registry, as for acme_seren and acme_kalos."
        )
    raise StudyError(
        f"The folder of the trace holds neither {' nor '.join(FILES.values())}; expected one of them. Put it there, or "
        "name your file under `files` of the trace in the registry, as seren or kalos."
    )


def _split_into_pods(table: pl.LazyFrame) -> pl.LazyFrame:
    """Represent a job as `size` equal pods, one on each of node_num nodes, with the requests of one pod.

    gpu_num and cpu_num are totals of the job; memory is per pod. If whole GPUs or milli-cores do not divide among the
    pods (`uneven_pods`), equal pods would not add up to the job. Then it is one instance, with the memory of all pods.
    """
    pods = pl.when(pl.col("node_num") > 0).then("node_num").otherwise(pl.lit(1, dtype=pl.Int64))
    is_even = (pl.col("gpu_milli") % (1000 * pods) == 0) & (pl.col("cpu_milli") % pods == 0).fill_null(True)
    size = pl.when(is_even).then(pods).otherwise(pl.lit(1, dtype=pl.Int64))
    return table.with_columns(
        gpu_milli=pl.col("gpu_milli") // size,
        cpu_milli=pl.col("cpu_milli") // size,
        mem_mib=pl.col("mem_mib") * (pods // size),
        size=size,
        uneven_pods=(pods > 1) & ~is_even,
    )
