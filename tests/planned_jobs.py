"""All jobs of a study as Snakemake would run them, without running any.

As a script, in a checkout: the jobs of these configuration files, as lines of JSON on standard output.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace


def jobs_of(checkout, *configfiles: str) -> list[SimpleNamespace]:
    """Every job: what _shown has; code: the modules that its script imports, params: the other parameters."""
    from study_runs import environment

    command = [sys.executable, __file__, *configfiles]
    done = subprocess.run(command, cwd=checkout.folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return [SimpleNamespace(**json.loads(line)) for line in done.stdout.splitlines()]


def _shown(job, code_files: dict[str, list[str]]) -> dict:
    named = dict(job.params.items())
    code = code_files[named.pop("code")]
    return {
        "rule": job.rule.name,
        "script": Path(job.rule.script).stem,
        "question": job.rule.docstring,
        "wildcards": job.wildcards_dict,
        "input": {name: _flat(paths) for name, paths in job.input.items()},
        "inputs": [str(path) for path in job.input],
        "outputs": [str(path) for path in job.output],
        "code": code,
        "params": named,
        "resources": {"threads": job.threads, **{name: job.resources.get(name) for name in ("mem_mb", "runtime")}},
    }


def _flat(given) -> list[str]:
    return [given] if isinstance(given, str) else [str(one) for one in given]


def main(configfiles: list[str]) -> None:
    from snakemake.api import SnakemakeApi
    from snakemake.settings.enums import Quietness
    from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings

    with contextlib.redirect_stdout(sys.stderr), SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        given = ConfigSettings(configfiles=[Path(file) for file in configfiles])
        study = api.workflow(ResourceSettings(cores=8), config_settings=given, snakefile=Path("Snakefile"))
        study.dag().execute_workflow(executor="dryrun")
        code_files = study._workflow.globals["STUDY"].code_files
        jobs = [_shown(job, code_files) for job in study._workflow.dag.jobs if job.rule.script]
    for job in jobs:
        print(json.dumps(job, default=list))


if __name__ == "__main__":
    main(sys.argv[1:])
