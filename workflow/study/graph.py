"""What Snakemake's graph knows of every job, as plain values."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def jobs_behind(products: Iterable[str], jobs: Iterable[Any], root: Path) -> list[dict]:
    """The jobs that the products come from, directly or through another product, in the order of their first output.

    A job is {rule, wildcards, script, parameters, inputs, code, outputs}: `inputs` are data and texts, `code` the
    modules that its script imports, `script` the file under `root`. Paths stand as the rules write them. What is gone
    when the study is done, and the jobs that made only that, is left out: it is how the work was divided.
    """
    jobs = list(jobs)
    gone = {str(path) for job in jobs for path in job.temp_output}
    jobs_by_output = {str(path): job for job in jobs for path in job.output if str(path) not in gone}
    found, pending = {}, [str(path) for path in products]
    while pending:
        job = jobs_by_output.get(pending.pop())
        if job is not None and job not in found:
            found[job] = _described(job, root, gone)
            pending += map(str, job.input)
    return sorted(found.values(), key=lambda job: job["outputs"])


def _described(job: Any, root: Path, gone: set[str]) -> dict:
    code = job.input.get("code", [])
    code = [code] if isinstance(code, str) else [str(path) for path in code]
    return {
        "rule": job.rule.name,
        "wildcards": dict(job.wildcards_dict),
        "script": os.path.relpath(Path(str(job.rule.basedir)) / job.rule.script, root) if job.rule.script else None,
        "parameters": dict(job.params.items()),
        "inputs": sorted({str(path) for path in job.input} - set(code) - gone),
        "code": sorted(code),
        "outputs": [str(path) for path in job.output],
    }
