"""List all jobs of a study as Snakemake would run them, without running any.

As a script in a checkout: print the jobs of these configuration files as lines of JSON.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace


def plan_jobs(checkout, *configfiles: str) -> list[SimpleNamespace]:
    """Return every job: see _shown; code: the modules its script imports, params: the other parameters."""
    from study_runs import environment

    command = [sys.executable, __file__, *configfiles]
    process = subprocess.run(command, cwd=checkout.folder, env=environment(), capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    return [SimpleNamespace(**json.loads(line)) for line in process.stdout.splitlines()]


def _shown(job, code_files: dict[str, list[str]]) -> dict:
    params = dict(job.params.items())
    code = code_files[params.pop("code")]
    return {
        "rule": job.rule.name,
        "script": Path(job.rule.script).stem,
        "question": job.rule.docstring,
        "wildcards": job.wildcards_dict,
        "input": {name: _flat(paths) for name, paths in job.input.items()},
        "inputs": [str(path) for path in job.input],
        "outputs": [str(path) for path in job.output],
        "code": code,
        "params": params,
        "resources": {"threads": job.threads, **{name: job.resources.get(name) for name in ("mem_mb", "runtime")}},
    }


def _flat(paths) -> list[str]:
    return [paths] if isinstance(paths, str) else [str(path) for path in paths]


def main(configfiles: list[str]) -> None:
    from snakemake.api import SnakemakeApi
    from snakemake.settings.enums import Quietness
    from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings

    with contextlib.redirect_stdout(sys.stderr), SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        config_settings = ConfigSettings(configfiles=[Path(file) for file in configfiles])
        workflow = api.workflow(ResourceSettings(cores=8), config_settings=config_settings, snakefile=Path("Snakefile"))
        workflow.dag().execute_workflow(executor="dryrun")
        code_files = workflow._workflow.globals["STUDY"].code_files
        jobs = [_shown(job, code_files) for job in workflow._workflow.dag.jobs if job.rule.script]
    for job in jobs:
        print(json.dumps(job, default=list))


if __name__ == "__main__":
    main(sys.argv[1:])
