"""Snakemake's jobs as plain values."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ttf.engine.storage.links import resolve_link


def collect_jobs(
    products: Iterable[str],
    jobs: Iterable[Any],
    root: Path,
    list_extra_inputs: Callable[[str, Mapping[str, str]], Iterable[str]],
    code_files: Mapping[str, list[str]],
    name_rule: Callable[[str], str] = str,
) -> list[dict]:
    """Return the jobs behind these products, direct and indirect, in the order of their first output.

    A job is {rule, wildcards, script, parameters, inputs, code, outputs}. `inputs` includes what `list_extra_inputs`
    returns for the rule and its wildcards. `code` lists the modules of the script, found in code_files by
    the parameter `code`, a digest. Code and script are relative to `root`. Temporary files, and jobs that make only
    them, are omitted.
    """
    jobs = list(jobs)
    temporary = {str(path) for job in jobs for path in job.temp_output}
    jobs_by_output = {str(path): job for job in jobs for path in job.output if str(path) not in temporary}
    description_by_job, pending = {}, [str(path) for path in products]
    while pending:
        job = jobs_by_output.get(pending.pop())
        if job is not None and job not in description_by_job:
            rule = name_rule(job.rule.name)
            inputs = {str(path) for path in job.input} | set(list_extra_inputs(rule, job.wildcards_dict))
            description_by_job[job] = _describe_job(job, rule, root, inputs - temporary, code_files)
            pending += inputs
    return sorted(description_by_job.values(), key=lambda job: job["outputs"])


def _describe_job(job: Any, rule: str, root: Path, inputs: set[str], code_files: Mapping[str, list[str]]) -> dict:
    """Return the entry of a job in `collect_jobs`."""
    parameters = dict(job.params.items())
    code = parameters.pop("code", None)
    return {
        "rule": rule,
        # Without the empty edition, which is the study's own.
        "wildcards": {name: value for name, value in job.wildcards_dict.items() if value},
        "script": os.path.relpath(Path(str(job.rule.basedir)) / job.rule.script, root) if job.rule.script else None,
        "parameters": parameters,
        "inputs": sorted(map(resolve_link, inputs)),
        "code": code_files.get(code, []),
        "outputs": [str(path) for path in job.output],
    }
