"""manifest.json of a study: what every product was made of, so that it can be checked and made again."""

import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from ttf.engine.provenance.digests import CHECKOUT, Memory, members, name_of, of_folder, of_workflow, touched

# What git is asked about: nothing else has a part in results, a profile only in where and when jobs run.
_CODE = ["Snakefile", "workflow", "scripts", "config", "report", "samples"]
_CODE += ["pyproject.toml", "environment.yml", "CITATION.cff"]
_RESULTS = "results/"


def manifest(
    jobs: list[dict[str, Any]], study: list[str], folders: Mapping[str, list[str]], memory: Memory
) -> dict[str, Any]:
    """The manifest of these jobs (study.graph.jobs_behind), whose files are all there.

    `products`, `raw` and `code` name each file with SHA-256 and size in bytes, and say where it is a link and where, of
    a Python module, the digest is of its syntax; of the workflow also what no job was given; `jobs` what each job was
    given, with the digests of its inputs. A product that was written to after its rule had finished is `edited`.
    `folders`: folder of raw tables -> its entries that are not read.
    """
    made_by = {file: (job, output) for job in jobs for output in job["outputs"] for file in members(output)}
    read = {file for job in jobs for path in [*job["inputs"], *_code(job)] for file in members(path)}
    read |= {_seen_from_here(CHECKOUT / name) for name in of_workflow()}
    digests = memory.digests(sorted(read | made_by.keys()))
    edited = {
        file for file, (_, output) in made_by.items() if touched(file, output) and memory.last(file) != digests[file]
    }
    memory.keep({file: digest for file, digest in digests.items() if file not in edited})

    def about(file: str) -> dict[str, Any]:
        link = {"link": True} if Path(file).is_symlink() else {}
        syntax = {"of": "syntax"} if file.endswith(".py") else {}
        return {"sha256": digests[file], "size": Path(file).stat().st_size} | syntax | link

    def digested(paths: Iterable[str]) -> dict[str, str]:
        # In the order of their names, wherever the workflow lies.
        named = {name_of(path): path for path in paths}
        return {
            name: of_folder(path, digests) if Path(path).is_dir() else digests[path]
            for name, path in sorted(named.items())
        }

    code = {file for file in read if _is_of_checkout(file)}
    return {
        "study": study,
        "configuration": digested(path for path in made_by if path.endswith("/config.yaml")),
        "version": _project(CHECKOUT / "pyproject.toml")["version"],
        "git": revision(CHECKOUT),
        "python": platform.python_version(),
        "packages": versions(CHECKOUT / "pyproject.toml"),
        "raw": {name_of(file): about(file) for file in sorted((read | made_by.keys()) - code) if not _is_result(file)},
        "folders": {name_of(folder): entries for folder, entries in sorted(folders.items())},
        "code": dict(sorted((name_of(file), about(file)) for file in code)),
        "jobs": {
            identity(job): {
                "rule": job["rule"],
                "wildcards": job["wildcards"],
                "script": job["script"],
                "parameters": job["parameters"],
                "inputs": digested(job["inputs"]),
                "code": digested(_code(job)),
                "outputs": job["outputs"],
            }
            for job in jobs
        },
        "products": {
            file: about(file)
            | {"rule": made_by[file][0]["rule"], "job": identity(made_by[file][0])}
            | ({"edited": True} if file in edited else {})
            for file in sorted(made_by)
            if _is_result(file)
        },
    }


def identity(job: dict[str, Any]) -> str:
    """The name of a job: sample/fit_mttf."""
    return "/".join([*job["wildcards"].values(), job["rule"]])


def _code(job: dict[str, Any]) -> list[str]:
    """The script of a job, if it has one, and what that imports; a module outside the checkout as it was typed."""
    names = [name for name in (job["script"], *job["code"]) if name]
    return [_seen_from_here(CHECKOUT / name) if (CHECKOUT / name).exists() else name for name in names]


def _seen_from_here(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _is_result(file: str) -> bool:
    return file.startswith(_RESULTS)


def _is_of_checkout(file: str) -> bool:
    """Whether the file came with the workflow: a module, a template, a schema. Raw files may lie below it, in data/."""
    name = name_of(str(Path.cwd() / file))
    return not Path(name).is_absolute() and Path(name).parts[0] in _CODE


def revision(folder: Path) -> dict[str, Any]:
    """The git revision of a checkout, and whether its code was changed since; blank with a reason if git knows none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True, check=True
        ).stdout

    unknown = {"revision": None, "changed": None}
    try:
        top, head = git("rev-parse", "--show-toplevel", "HEAD").splitlines()
        if Path(top).resolve() != folder.resolve():
            return unknown | {"reason": "the workflow lies inside another repository"}
        return {"revision": head, "changed": bool(git("status", "--porcelain", "--", *_CODE)), "reason": None}
    except OSError:
        return unknown | {"reason": "git is not installed"}
    except (subprocess.CalledProcessError, ValueError):
        return unknown | {"reason": "the workflow is not a git checkout with a commit"}


def versions(project: Path) -> dict[str, str | None]:
    """The installed version of each direct dependency in pyproject.toml; None for one that is not installed."""
    found = {}
    for line in _project(project)["dependencies"]:
        name = re.match(r"[A-Za-z0-9._-]+", line)[0]
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def _project(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]
