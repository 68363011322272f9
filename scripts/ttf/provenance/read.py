"""The manifest as a graph: which job made a file, and what follows from one; and whether files are still as it says."""

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from ttf.errors import StudyError
from ttf.provenance.digests import located, made_at, members, sha256, touched
from ttf.report.words import plural


class Manifest(dict):
    """manifest.json of a study as ttf.provenance.manifest wrote it."""

    @classmethod
    def read(cls, file: Path) -> "Manifest":
        try:
            return cls(json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise StudyError(f"{file}: there is no manifest yet. Run `make report`, which writes it.") from None
        except ValueError as error:
            raise StudyError(f"{file}: {error}. Delete it and run `make report`.") from None

    @cached_property
    def files(self) -> dict[str, dict[str, Any]]:
        """Name -> what is known of a file: products, raw files and code."""
        return self["raw"] | self["code"] | self["products"]

    @cached_property
    def maker(self) -> dict[str, str]:
        """Output of a rule, a file or a folder -> the job that makes it."""
        return {output: name for name, job in self["jobs"].items() for output in job["outputs"]} | {
            file: product["job"] for file, product in self["products"].items()
        }

    def users(self, file: str) -> list[str]:
        """The jobs that were given the file, or a folder that it is in."""
        ways = {file, *map(str, Path(file).parents)}
        return [name for name, job in self["jobs"].items() if ways & (job["inputs"].keys() | job["code"].keys())]

    def products_after(self, jobs: Iterable[str]) -> set[str]:
        """Every product of these jobs and of all jobs that use them, directly or through others."""
        behind: set[str] = set()
        pending = list(jobs)
        while pending:
            name = pending.pop()
            if name not in behind:
                behind.add(name)
                pending += [user for output in self["jobs"][name]["outputs"] for user in self.users(output)]
        return {file for file, product in self["products"].items() if product["job"] in behind}


def problems(manifest: Manifest) -> list[str]:
    """A line for each file that is not as the manifest has it, with what to do; raw files and code before products."""
    now = _digests_now(manifest)
    lines = [_source(manifest, file, now[file]) for file in [*manifest["raw"], *manifest["code"]]]
    return [line for line in [*lines, *(_product(manifest, file, now[file]) for file in manifest["products"])] if line]


def in_order(manifest: Manifest) -> str:
    """What there is to say where nothing is wrong."""
    return (
        f"{plural(len(manifest['products']), 'product')} as their rules made them; "
        f"{plural(len(manifest['raw']), 'raw file')} and {plural(len(manifest['code']), 'file')} of the workflow "
        "unchanged."
    )


def _digests_now(manifest: Manifest) -> dict[str, str | None]:
    there = [file for file in manifest.files if located(file).is_file()]
    found = dict(zip(there, sha256(map(located, there)), strict=True))
    return {file: found.get(file) for file in manifest.files}


def _source(manifest: Manifest, file: str, digest: str | None) -> str | None:
    if digest == manifest.files[file]["sha256"]:
        return None
    users = manifest.users(file)
    if not users:
        return f"{file}: {'missing' if digest is None else 'changed'}; nothing was made of it. Run `make report`."
    after = plural(len(manifest.products_after(users)), "product")
    if digest is None:
        return f"{file}: missing; {after} come from it. Put it back, or run `make report`."
    rules = sorted({manifest["jobs"][name]["rule"] for name in users})
    used = rules[0] if len(rules) == 1 else f"{rules[0]} and {plural(len(rules) - 1, 'other rule')}"
    return f"{file}: changed since {used} used it; {after} out of date. Run `make report`."


def _product(manifest: Manifest, file: str, digest: str | None) -> str | None:
    product = manifest["products"][file]
    rule = product["rule"]
    if digest is None:
        return f"{file}: missing. Run `make report`: {rule} makes it again."
    if digest == product["sha256"] and "edited" not in product:
        return None
    output = next(output for output in manifest["jobs"][product["job"]]["outputs"] if file in members(output))
    if digest != product["sha256"] and made_at(output) is not None and not touched(file, output):
        return f"{file}: made anew by {rule} since the manifest was written. Run `make report`, which writes it."
    return f"{file}: edited since {rule} made it. Delete it and run `make report`."
