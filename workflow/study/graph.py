"""What Snakemake's graph knows of every job, as plain values."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ttf.engine.storage.links import own_name


def jobs_behind(
    products: Iterable[str],
    jobs: Iterable[Any],
    root: Path,
    read_beside: Callable[[str, Mapping[str, str]], Iterable[str]],
    code_files: Mapping[str, list[str]],
    own_name: Callable[[str], str] = str,
) -> list[dict]:
    """The jobs that the products come from, directly or through another product, in the order of their first output.

    A job is {rule, wildcards, script, parameters, inputs, code, outputs}: `inputs` are data and texts, and what its
    rule reads besides (`read_beside`, of the rule and its wildcards), `code` the modules that its script imports, by
    the digest that is its parameter `code` (code_files). These and `script` are named from `root`, other paths stand as
    the rules write them. What is gone when the study is done, and the jobs that made only that, is left out: it is how
    the work was divided.
    """
    jobs = list(jobs)
    gone = {str(path) for job in jobs for path in job.temp_output}
    jobs_by_output = {str(path): job for job in jobs for path in job.output if str(path) not in gone}
    found, pending = {}, [str(path) for path in products]
    while pending:
        job = jobs_by_output.get(pending.pop())
        if job is not None and job not in found:
            rule = own_name(job.rule.name)
            given = {str(path) for path in job.input} | set(read_beside(rule, job.wildcards_dict))
            found[job] = _described(job, rule, root, given - gone, code_files)
            pending += given
    return sorted(found.values(), key=lambda job: job["outputs"])


def _described(job: Any, rule: str, root: Path, inputs: set[str], code_files: Mapping[str, list[str]]) -> dict:
    named = dict(job.params.items())
    code = named.pop("code", None)
    return {
        "rule": rule,
        "wildcards": dict(job.wildcards_dict),
        "script": os.path.relpath(Path(str(job.rule.basedir)) / job.rule.script, root) if job.rule.script else None,
        "parameters": named,
        "inputs": sorted(map(own_name, inputs)),
        "code": code_files.get(code, []),
        "outputs": [str(path) for path in job.output],
    }
