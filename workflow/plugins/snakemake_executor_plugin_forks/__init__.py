"""Runs jobs on this machine as Snakemake does, but the scripts of small ones as forks of one process that has imported
what they use: to start Python and its libraries takes longer than most jobs of a small trace.

`make` finds it in the checkout (scripts/run_study.py); without it scripts are started one by one, to the same bytes.
"""

import os
import pickle
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from snakemake.benchmark import BenchmarkRecord, write_benchmark_records
from snakemake.exceptions import SpawnedJobError
from snakemake.executors.local import Executor as LocalExecutor
from snakemake.executors.local import common_settings, run_wrapper

from .forks import Forks, can_fork

__all__ = ["Executor", "common_settings"]

# For fewer jobs the process would cost more than it saves.
_FEWEST = 4
# A job that asks for more memory is started by itself: it is no short one, and Polars has a thread that gives memory
# back to the system, which a fork has not.
_MOST_MB = 1024


class Executor(LocalExecutor):
    def __post_init__(self) -> None:
        super().__post_init__()
        jobs, self._cancelled = sum(1 for _ in self.dag.needrun_jobs()), False
        self._forks = Forks() if jobs >= _FEWEST and can_fork() else None

    def run_single_job(self, job: Any) -> Future:
        special = (
            self.workflow.deployment_settings.deployment_method
            or self.workflow.output_settings.benchmark_extended
            or self.workflow.workflow_settings.cache
            or job.is_shadow
            or (job.benchmark_repeats or 1) > 1
        )
        small = job.resources.get("mem_mb", 0) <= _MOST_MB
        if self._forks is None or special or not small or not str(job.rule.script).endswith(".py"):
            return super().run_single_job(job)
        return self.pool.submit(self._fork, job, self.job_args_and_prepare(job))

    def cancel(self) -> None:
        self._cancelled = True
        if self._forks is not None:
            self._forks.close()
        super().cancel()

    def _fork(self, job: Any, given: tuple) -> None:
        """Raises SpawnedJobError where the script ends with an error, of which its log tells."""
        _, inputs, output, params, wildcards, threads, resources, log, benchmark, *_ = given
        script = Path(str(job.rule.basedir)) / job.rule.script
        told = SimpleNamespace(
            input=inputs,
            output=output,
            params=params,
            wildcards=wildcards,
            threads=threads,
            resources=resources,
            log=log,
            rule=job.rule.name,
            scriptdir=str(script.parent),
        )
        environment = {**os.environ, **({"TMPDIR": folder} if (folder := resources.get("tmpdir")) else {})}
        ended = self._forks.run(script.resolve(), pickle.dumps(told), environment)
        if ended is None and not self._cancelled:
            run_wrapper(*given)
            return
        if ended is None or ended.code:
            raise SpawnedJobError()
        if benchmark:
            record = BenchmarkRecord(
                running_time=ended.wall_s,
                max_rss=ended.most_mb,
                cpu_time=ended.processor_s,
                cpu_usage=100 * ended.processor_s,
            )
            record.data_collected = True
            write_benchmark_records([record], benchmark, False)
