"""manifest.json of a study: the origin of every product, for verification and reproduction."""

import itertools
import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ttf.engine.checkout import CHECKOUT, find_workflow_file
from ttf.engine.extras import EXTRAS
from ttf.engine.provenance.digests import (
    DigestCache,
    digest_folder,
    is_touched,
    list_code_files,
    list_members,
    manifest_name,
)
from ttf.engine.storage.plain_files import make_relative

# Paths whose git status matters; nothing else affects results, and a profile only affects where jobs run.
_CODE_PATHS = ["Snakefile", "workflow", "scripts", "config", "report"]
_CODE_PATHS += ["pyproject.toml", "environment.yml", "CITATION.cff"]
_RESULTS = "results/"


def make_manifest(
    jobs: list[dict[str, Any]], study: list[str], folders: Mapping[str, list[str]], memory: DigestCache
) -> dict[str, Any]:
    """Return the manifest of these jobs (ttf.study.running.graph.collect_jobs), whose files must all exist.

    `products`, `raw` and `code` list each file with SHA-256 and size (bytes), and mark links and digests of Python
    syntax; `code` includes workflow files that no job has as input. `jobs` lists the inputs of each job with digests. A
    product written to after its rule ended is `edited`. `folders`: folder of raw tables -> entries that are not read.
    """
    # A module is behind many jobs.
    locate_code, name_file = cache(_locate_code), cache(manifest_name)

    def list_code(job: dict[str, Any]) -> list[str]:
        return [locate_code(name) for name in (job["script"], *job["code"]) if name]

    makers = {file: (job, output) for job in jobs for output in job["outputs"] for file in list_members(output)}
    input_files = {file for job in jobs for path in job["inputs"] for file in list_members(path)}
    input_files |= {file for job in jobs for file in list_code(job)}
    input_files |= {make_relative(find_workflow_file(name)) for name in list_code_files()}
    digests = memory.digests(sorted(input_files | makers.keys()))
    edited = {
        file
        for file, (_, output) in makers.items()
        if is_touched(file, output) and memory.cached_digest(file) != digests[file]
    }
    memory.store({file: digest for file, digest in digests.items() if file not in edited})

    def file_facts(file: str) -> dict[str, Any]:
        link = {"link": True} if Path(file).is_symlink() else {}
        syntax = {"of": "syntax"} if file.endswith(".py") else {}
        return {"sha256": digests[file], "size": Path(file).stat().st_size} | syntax | link

    def digest_paths(paths: Iterable[str]) -> dict[str, str]:
        # Sorted by name, so that the order does not depend on the place of the workflow.
        path_by_name = {name_file(path): path for path in paths}
        return {name: digests.get(path) or digest_folder(path, digests) for name, path in sorted(path_by_name.items())}

    code = {file for file in input_files if _is_checkout_file(file)}
    raw = [file for file in sorted((input_files | makers.keys()) - code) if not file.startswith(_RESULTS)]
    return {
        "study": study,
        "configuration": digest_paths(path for path in makers if path.endswith("/config.yaml")),
        "version": _read_project(CHECKOUT / "pyproject.toml")["version"],
        "git": revision(CHECKOUT),
        "python": platform.python_version(),
        "packages": versions(CHECKOUT / "pyproject.toml"),
        "raw": {manifest_name(file): file_facts(file) for file in raw},
        "folders": {manifest_name(folder): entries for folder, entries in sorted(folders.items())},
        "code": dict(sorted((manifest_name(file), file_facts(file)) for file in code)),
        "jobs": {
            job_name(job): {
                "rule": job["rule"],
                "wildcards": job["wildcards"],
                "script": job["script"],
                "parameters": job["parameters"],
                "inputs": digest_paths(job["inputs"]),
                "code": digest_paths(list_code(job)),
                "outputs": job["outputs"],
            }
            for job in jobs
        },
        "products": {
            file: file_facts(file)
            | {"rule": makers[file][0]["rule"], "job": job_name(makers[file][0])}
            | ({"edited": True} if file in edited else {})
            for file in sorted(makers)
            if file.startswith(_RESULTS)
        },
    }


def job_name(job: dict[str, Any]) -> str:
    """Return the name of a job: sample/fit_mttf."""
    return "/".join([*job["wildcards"].values(), job["rule"]])


def _locate_code(name: str) -> str:
    file = find_workflow_file(name)
    return make_relative(file) if file.exists() else name


def _is_checkout_file(file: str) -> bool:
    name = manifest_name(str(Path.cwd() / file))
    return not Path(name).is_absolute() and Path(name).parts[0] in _CODE_PATHS


def revision(folder: Path) -> dict[str, Any]:
    """Return the git revision of a checkout and whether its code has changed, or None with a reason."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True, check=True
        ).stdout

    no_revision = {"revision": None, "changed": None}
    try:
        top, head = git("rev-parse", "--show-toplevel", "HEAD").splitlines()
        if Path(top).resolve() != folder.resolve():
            return no_revision | {"reason": "the workflow lies inside another repository"}
        return {"revision": head, "changed": bool(git("status", "--porcelain", "--", *_CODE_PATHS)), "reason": None}
    except OSError:
        return no_revision | {"reason": "git is not installed"}
    except (subprocess.CalledProcessError, ValueError):
        return no_revision | {"reason": "the workflow is not a git checkout with a commit"}


def versions(project: Path) -> dict[str, str | None]:
    """Return the installed version of each direct dependency and extra in pyproject.toml, None if not installed."""
    version_by_package: dict[str, str | None] = {}
    document = _read_project(project)
    extras = (document["optional-dependencies"][extra] for extra in EXTRAS)
    for line in sorted([*document["dependencies"], *itertools.chain(*extras)]):
        name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
        try:
            version_by_package[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            version_by_package[name] = None
    return version_by_package


def _read_project(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]
