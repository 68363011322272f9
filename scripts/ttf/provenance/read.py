"""The manifest as a graph: which job made a file, and what follows from one; and whether files are still as it says."""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from ttf.errors import StudyError
from ttf.plain_files import what_lies_at
from ttf.provenance import seal
from ttf.provenance.digests import (
    MEMORY,
    TIMESTAMP,
    Memory,
    located,
    made_at,
    made_by_a_rule,
    of_workflow,
    sha256,
    touched,
)
from ttf.provenance.seal import NotIntact, is_entry, is_inside, printable, unsealed
from ttf.report.words import plural


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier() and len(value) < 200


def _is_revision(value: Any) -> bool:
    return value is None or (isinstance(value, str) and re.fullmatch(r"[0-9a-f]{40,64}", value) is not None)


_ANEW = "Delete it and run `make report`."
_ENTRIES = {str: is_entry}
_TEXTS = {str: str}
_JOB = {"rule": _is_name, "wildcards": dict, "parameters": dict, "inputs": _TEXTS, "code": _TEXTS, "outputs": [str]}
_FORM = {
    "study": [str],
    "configuration": _TEXTS,
    "git": {"revision": _is_revision},
    "python": str,
    "packages": dict,
    "raw": _ENTRIES,
    "code": _ENTRIES,
    "jobs": {str: {"script": lambda script: script is None or isinstance(script, str)} | _JOB},
    "products": {str: lambda about: is_entry(about) and _fits(about, {"rule": _is_name, "job": str})},
}


class Manifest(dict):
    """manifest.json of a study as ttf.provenance.manifest wrote it. written: when, in s since 1970."""

    written = 0.0

    @classmethod
    def read(cls, file: Path) -> "Manifest":
        """Raises NotIntact where it is not as it was written, StudyError where there is none."""
        try:
            found = cls(unsealed(file))
        except FileNotFoundError:
            raise StudyError(f"{file}: there is no manifest yet. Run `make report`, which writes it.") from None
        except NotIntact as error:
            raise NotIntact(f"{error}. {_ANEW}") from None
        if not _fits(found, _FORM) or not all(map(found.is_product, found["products"])):
            raise NotIntact(f"{file}: is no manifest of a study. {_ANEW}")
        if Memory(MEMORY).last(str(file)) not in (None, seal.digest_of(file)):
            raise NotIntact(f"{file}: is another than the one that the last run here wrote. {_ANEW}")
        found.written = file.stat().st_mtime
        return found

    def is_product(self, name: str) -> bool:
        """Whether a product lies in the folder, and is one of a job."""
        job = self["jobs"].get(self["products"][name]["job"])
        return is_inside(name) and job is not None and not _ways(name).isdisjoint(job["outputs"])

    def output(self, product: str) -> str:
        """The output of its job that a product is, or the folder that it is in."""
        return next(
            path for path in self["jobs"][self["products"][product]["job"]]["outputs"] if path in _ways(product)
        )

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
        ways = _ways(file)
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


def _fits(value: Any, form: Any) -> bool:
    """Whether JSON is of a form: a type, [a form] of each in a list, {str: a form} of each value, {key: a form} of
    these keys, a function that says so.
    """
    if isinstance(form, type):
        return isinstance(value, form)
    if isinstance(form, list):
        return isinstance(value, list) and all(_fits(one, form[0]) for one in value)
    if not isinstance(form, dict):
        return form(value)
    if not isinstance(value, dict):
        return False
    if str in form:
        return all(_fits(one, form[str]) for one in value.values())
    return all(key in value and _fits(value[key], form[key]) for key in form)


def problems(manifest: Manifest, own: Path) -> list[str]:
    """A line for each file that is not as the manifest has it, with what to do; raw files and code before products, and
    last what was added. own: the folder of the study, results/studies/<name>.
    """
    return [*others_than_made(manifest), *_added(manifest, own)]


def others_than_made(manifest: Manifest) -> list[str]:
    """The same without what was added: nothing in the manifest comes from that."""
    now = _digests_now(manifest)
    lines = [_source(manifest, file, now[file]) for file in [*manifest["raw"], *manifest["code"]]]
    lines += [_product(manifest, file, now[file]) for file in manifest["products"]]
    return [*filter(None, lines)]


def _added(manifest: Manifest, own: Path) -> Iterator[str]:
    """A line for each file of the workflow that the manifest does not have; for each of the results that neither it has
    nor that of another study, and that is no product of Snakemake's either, as a site is; and for what was published.
    """
    for name in of_workflow():
        if name not in manifest["code"]:
            yield f"{printable(name)}: added to the workflow since the manifest was written. Run `make report`."
    studies, results = own.parent, own.parents[1]
    outputs = {output for job in manifest["jobs"].values() for output in job["outputs"]}
    known = {str(results / ".gitkeep"), str(own / "manifest.json"), str(own / "study.yaml"), *manifest["products"]}
    known.update(*(_products_of(file) for file in studies.glob("*/manifest.json") if file.parent != own))
    for path in sorted(seal.there(results)):
        file = results / path
        # Itself, or what it is the signature of.
        subjects = {str(file), *(str(file).removesuffix(ending) for ending in seal.SIGNATURES)}
        of_another_study = studies in file.parents and own not in file.parents
        if subjects & known or of_another_study or file.name == TIMESTAMP:
            continue
        if outputs & _ways(str(file)) or not any(map(made_by_a_rule, subjects)):
            yield f"{printable(str(file))}: added; no rule of the study made it. Remove it."
    for listed in sorted(own.glob(f"*/{seal.NAME}")):
        yield from (f"{listed.parent}/{line}" for line in seal.problems(listed.parent))


def _products_of(manifest: Path) -> Iterable[str]:
    try:
        products = unsealed(manifest).get("products")
    except (NotIntact, OSError):
        return ()
    return products if isinstance(products, dict) else ()


def _ways(file: str) -> set[str]:
    """The file, and the folders that it is in."""
    return {file, *map(str, Path(file).parents)}


def in_order(manifest: Manifest) -> str:
    """What there is to say where nothing is wrong."""
    return (
        f"{plural(len(manifest['products']), 'product')} as their rules made them; "
        f"{plural(len(manifest['raw']), 'raw file')} and {plural(len(manifest['code']), 'file')} of the workflow "
        "unchanged."
    )


def _digests_now(manifest: Manifest) -> dict[str, str | None]:
    """The digest of each file; None where there is none. One of another size than it had is not read."""
    sizes = {file: located(file).stat().st_size for file in manifest.files if located(file).is_file()}
    same = [file for file, size in sizes.items() if size == manifest.files[file]["size"]]
    found = dict(zip(same, sha256(map(located, same)), strict=True)) | dict.fromkeys(
        sizes.keys() - same, "of another size"
    )
    return {file: found.get(file) for file in manifest.files}


def _source(manifest: Manifest, file: str, digest: str | None) -> str | None:
    if digest == manifest.files[file]["sha256"]:
        return None
    name, users = printable(file), manifest.users(file)
    if not users:
        state = "missing" if digest is None else "changed"
        return f"{name}: {state} since the manifest was written. Run `make report`."
    after = plural(len(manifest.products_after(users)), "product")
    if digest is None:
        return f"{name}: missing; {after} come from it. Put it back, or run `make report`."
    rules = sorted({manifest["jobs"][user]["rule"] for user in users})
    used = rules[0] if len(rules) == 1 else f"{rules[0]} and {plural(len(rules) - 1, 'other rule')}"
    return f"{name}: changed since {used} used it; {after} out of date. Run `make report`."


def _product(manifest: Manifest, file: str, digest: str | None) -> str | None:
    product, name = manifest["products"][file], printable(file)
    rule = product["rule"]
    if kind := what_lies_at(located(file)):
        return f"{name}: {kind} was put there. Remove it and run `make report`: {rule} makes it again."
    if digest is None:
        return f"{name}: missing. Run `make report`: {rule} makes it again."
    if digest == product["sha256"] and "edited" not in product:
        return None
    output = manifest.output(file)
    # Made before, it was edited, whatever date it was given.
    if digest != product["sha256"] and (made_at(output) or 0) > manifest.written and not touched(file, output):
        return f"{name}: made anew by {rule} since the manifest was written. Run `make report`, which writes it."
    return f"{name}: edited since {rule} made it. Delete it and run `make report`."


def commit(then: dict[str, Any], now: dict[str, Any]) -> str:
    """At which commit a study was made, and at which the checkout is; nothing where git did not know it."""
    if then["revision"] is None:
        return ""
    text = f", made at commit {then['revision'][:12]}"
    text += ", with changes that it does not have" if then.get("changed") else ""
    if now["revision"] not in (None, then["revision"]):
        text += f"; the checkout is at {now['revision'][:12]} now"
    return text
