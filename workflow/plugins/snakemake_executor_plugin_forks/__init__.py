"""Runs jobs on this machine like Snakemake, but runs scripts of small jobs as forks of one process.

That process has already imported the libraries. Importing them takes longer than most jobs of a small trace. `ttf`
names this plugin (ttf.commands.run); without it each script starts alone, with the same results.
"""

import os
import pickle
import shlex
import sys
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

# For fewer jobs the process costs more than it saves.
_MIN_JOBS = 4
# A job that requests more memory starts alone: it is not short, and a fork lacks the thread by which Polars returns
# memory to the system.
_MAX_MB = 1024
# Snakemake starts a script by a shell that reads the path of Python unquoted. With a space in it only forks can start.
_CAN_START_ALONE = shlex.quote(sys.executable) == sys.executable


class Executor(LocalExecutor):
    """Run local jobs as forks of one process."""

    def __post_init__(self) -> None:
        super().__post_init__()
        jobs, self._cancelled = sum(1 for _ in self.dag.needrun_jobs()), False
        is_worth_it = jobs >= _MIN_JOBS or not _CAN_START_ALONE
        self._forks = Forks() if is_worth_it and can_fork() else None

    def run_single_job(self, job: Any) -> Future:
        """Run a small Python script as a fork, and any other job as Snakemake does."""
        needs_own_process = (
            self.workflow.deployment_settings.deployment_method
            or self.workflow.output_settings.benchmark_extended
            or self.workflow.workflow_settings.cache
            or job.is_shadow
            or (job.benchmark_repeats or 1) > 1
        )
        is_small = job.resources.get("mem_mb", 0) <= _MAX_MB or not _CAN_START_ALONE
        if self._forks is None or needs_own_process or not is_small or not str(job.rule.script).endswith(".py"):
            return super().run_single_job(job)
        return self.pool.submit(self._fork, job, self.job_args_and_prepare(job))

    def cancel(self) -> None:
        self._cancelled = True
        if self._forks is not None:
            self._forks.close()
        super().cancel()

    def _fork(self, job: Any, arguments: tuple) -> None:
        """Run the job's script as a fork; raise SpawnedJobError if it fails. Its log has the error."""
        _, inputs, output, params, wildcards, threads, resources, log, benchmark, *_ = arguments
        script = Path(str(job.rule.basedir)) / job.rule.script
        snakemake = SimpleNamespace(
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
        result = self._forks.run(script.resolve(), pickle.dumps(snakemake), environment)
        if result is None and not self._cancelled:
            run_wrapper(*arguments)
            return
        if result is None or result.code:
            raise SpawnedJobError()
        if benchmark:
            record = BenchmarkRecord(
                running_time=result.wall_s,
                max_rss=result.max_mb,
                cpu_time=result.processor_s,
                cpu_usage=100 * result.processor_s,
            )
            record.data_collected = True
            write_benchmark_records([record], benchmark, False)
