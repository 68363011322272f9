"""A peer of the benchmark: the job table out of the raw PAI tables, as somebody who knows DuckDB would write it.

Reads the job, the task and the instance table, takes start, end and size of each task from its instances, joins user
and request, and stores one row per task as Parquet. It checks no row: one that is damaged ends it.
usage: duckdb_jobs.py FOLDER TARGET
"""

import os
import sys
from pathlib import Path

import duckdb

TABLES = {
    "job": "job_name inst_id user status start_time end_time",
    "task": "job_name task_name inst_num status start_time end_time plan_cpu plan_mem plan_gpu gpu_type",
    "instance": "job_name task_name inst_name worker_name inst_id status start_time end_time machine",
}
NUMBERS = {"inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu"}

JOBS = """
copy (
    with run as (
        select
            job_name, task_name, count(distinct inst_name) as size, count(distinct machine) as nodes,
            min(start_time) filter (start_time > 0) as first_start, max(end_time) filter (end_time > 0) as last_end
        from instance
        group by all
    )
    select
        task.job_name, task.task_name, job."user", task.status, task.gpu_type,
        (task.plan_gpu * 10)::bigint as gpu_milli, (task.plan_cpu * 10)::bigint as cpu_milli,
        round(task.plan_mem * 1024)::bigint as mem_mib, run.size, run.nodes,
        run.first_start::bigint as start_s, run.last_end::bigint as end_s,
        (run.last_end - run.first_start)::bigint as runtime_s
    from task
    left join run using (job_name, task_name)
    left join job using (job_name)
) to '{target}' (format parquet)
"""


def main(folder: Path, target: Path) -> None:
    connection = duckdb.connect()
    connection.execute(f"set threads = {os.cpu_count()}")
    for table, names in TABLES.items():
        columns = {name: "DOUBLE" if name in NUMBERS else "VARCHAR" for name in names.split()}
        file = folder / f"pai_{table}_table.csv"
        connection.execute(
            f"create view {table} as select * from read_csv('{file}', header = false, columns = {columns})"
        )
    connection.execute(JOBS.format(target=target))
    print(connection.execute(f"select count(*), sum(runtime_s) from '{target}'").fetchone())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
