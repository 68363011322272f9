"""The manifest as a graph: which job made a file, and what follows from one."""

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from ttf.errors import StudyError


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
