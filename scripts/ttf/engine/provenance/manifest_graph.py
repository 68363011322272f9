"""The manifest as a graph of jobs and files, and checks that files still match it."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from ttf.engine.checkout import CHECKOUT
from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal
from ttf.engine.provenance.digests import (
    MEMORY,
    TIMESTAMP,
    DigestCache,
    has_rule_record,
    is_touched,
    list_code_files,
    locate_file,
    read_end_time,
    sha256,
)
from ttf.engine.provenance.seal import Tampered, is_inside, read_sealed, show_path
from ttf.engine.storage.plain_files import describe_non_file, is_ignored
from ttf.engine.words import plural

# The folder of a study has at least one of these.
_STUDY_FILES = ("config.yaml", "study.yaml", "manifest.json")
_REMEDY = "Delete it and run `ttf report`."
_SCHEMA = CHECKOUT / "workflow" / "schemas" / "manifest.yaml"


class Manifest(dict):
    """manifest.json of a study, as ttf.engine.provenance.manifest wrote it. written: time of writing, s since 1970."""

    written = 0.0

    @classmethod
    def read(cls, file: Path) -> "Manifest":
        """Read and validate a manifest. Raises Tampered if it was changed, StudyError if it is missing."""
        try:
            # Manifests of version 1.0.0 lack `folders`.
            manifest = cls({"folders": {}} | read_sealed(file))
        except FileNotFoundError:
            raise StudyError(f"{file}: there is no manifest yet. Run `ttf report`, which writes it.") from None
        except Tampered as error:
            raise Tampered(f"{error}. {_REMEDY}") from None
        validator = Draft202012Validator(yaml.safe_load(_SCHEMA.read_text(encoding="utf-8")))
        if not validator.is_valid(manifest) or not all(map(manifest.is_product, manifest["products"])):
            raise Tampered(f"{file}: is not a manifest of a study. {_REMEDY}")
        if DigestCache(MEMORY).cached_digest(str(file)) not in (None, seal.file_digest(file)):
            raise Tampered(f"{file}: is not the manifest that the last run here wrote. {_REMEDY}")
        manifest.written = file.stat().st_mtime
        return manifest

    def is_product(self, name: str) -> bool:
        """Whether a product lies inside the folder and belongs to a job."""
        job = self["jobs"].get(self["products"][name]["job"])
        return is_inside(name) and job is not None and not _path_and_parents(name).isdisjoint(job["outputs"])

    def output(self, product: str) -> str:
        """Return the output of the job that is the product or contains it."""
        outputs = self["jobs"][self["products"][product]["job"]]["outputs"]
        return next(path for path in outputs if path in _path_and_parents(product))

    @cached_property
    def files(self) -> dict[str, dict[str, Any]]:
        """Name -> recorded facts of each product, raw file and code file."""
        return self["raw"] | self["code"] | self["products"]

    @cached_property
    def maker(self) -> dict[str, str]:
        """File or folder -> the job that makes it."""
        return {output: name for name, job in self["jobs"].items() for output in job["outputs"]} | {
            file: product["job"] for file, product in self["products"].items()
        }

    def users(self, file: str) -> list[str]:
        """Return the jobs with the file or a parent folder as input."""
        paths = _path_and_parents(file)
        return [name for name, job in self["jobs"].items() if paths & (job["inputs"].keys() | job["code"].keys())]

    def products_after(self, jobs: Iterable[str]) -> set[str]:
        """Return all products of these jobs and of the jobs that depend on them, directly or indirectly."""
        visited: set[str] = set()
        pending = list(jobs)
        while pending:
            name = pending.pop()
            if name not in visited:
                visited.add(name)
                pending += [user for output in self["jobs"][name]["outputs"] for user in self.users(output)]
        return {file for file, product in self["products"].items() if product["job"] in visited}


def find_problems(manifest: Manifest, study_folder: Path) -> list[str]:
    """Return a line with advice for each file that differs from the manifest: raw files, code, products, added files.

    study_folder: results/studies/<name>.
    """
    return [*find_changed_files(manifest), *_report_added_files(manifest, study_folder)]


def find_changed_files(manifest: Manifest) -> list[str]:
    """Return the lines of `find_problems` without added files, which no product depends on."""
    digests = _current_digests(manifest, manifest.files)
    lines = [_find_source_problem(manifest, file, digests[file]) for file in [*manifest["raw"], *manifest["code"]]]
    lines += [_find_product_problem(manifest, file, digests[file]) for file in manifest["products"]]
    return [*filter(None, lines)]


def find_changed_products(manifest: Manifest, files: Iterable[str]) -> list[str]:
    """Return a line with advice for each of these files that is not an unchanged product."""
    files = list(files)
    digests = _current_digests(manifest, [file for file in files if file in manifest["products"]])
    advice = "no rule of the study made it. Remove it."
    lines = [
        _find_product_problem(manifest, file, digests[file]) if file in digests else f"{show_path(file)}: {advice}"
        for file in files
    ]
    return [*filter(None, lines)]


def _report_added_files(manifest: Manifest, study_folder: Path) -> Iterator[str]:
    """Yield a line for each file added to the workflow, the raw tables or the results.

    Folders with a file list of their own, such as a site, are checked against that list.
    """
    for name in list_code_files():
        if name not in manifest["code"]:
            yield f"{show_path(name)}: added to the workflow since the manifest was written. Run `ttf report`."
    yield from _report_added_raw_files(manifest)
    lists = sorted(study_folder.glob(f"*/{seal.NAME}"))
    yield from _report_added_results(manifest, study_folder, {file.parent for file in lists})
    for file in lists:
        yield from (f"{file.parent}/{line}" for line in seal.find_problems(file.parent))


def _report_added_results(manifest: Manifest, study_folder: Path, listed_folders: set[Path]) -> Iterator[str]:
    """Yield a line for each file that no study has, no rule made and neither `ttf score` nor `ttf metrics` wrote.

    listed_folders: folders with a file list, which reports links and other non-files itself.
    """
    studies, results, memory = study_folder.parent, study_folder.parents[1], DigestCache(MEMORY)
    other_studies = {file.parent for name in _STUDY_FILES for file in studies.glob(f"*/{name}")} - {study_folder}
    outputs = {output for job in manifest["jobs"].values() for output in job["outputs"]}
    own_files = (results / ".gitkeep", study_folder / "manifest.json", study_folder / "study.yaml")
    expected = {*map(str, own_files), *manifest["products"]}
    expected.update(*(_list_products(folder / "manifest.json") for folder in other_studies))
    for path in sorted(seal.list_paths(results)):
        file, parents = results / path, {*(results / path).parents}
        # The file itself, or the file that it signs.
        subjects = {str(file), *(str(file).removesuffix(ending) for ending in seal.SIGNATURES)}
        if subjects & expected or other_studies & parents or file.name == TIMESTAMP:
            continue
        name, recorded = show_path(str(file)), memory.cached_digest(str(file))
        if kind := describe_non_file(file):
            if not listed_folders & parents:
                yield f"{name}: {kind} was put there. Remove it."
        elif outputs & _path_and_parents(str(file)) or (recorded is None and not any(map(has_rule_record, subjects))):
            yield f"{name}: added; no rule of the study made it. Remove it."
        elif not any(map(has_rule_record, subjects)) and recorded != seal.file_digest(file):
            yield f"{name}: edited since `ttf` wrote it. Remove it."


def _report_added_raw_files(manifest: Manifest) -> Iterator[str]:
    read_paths = {locate_file(name).absolute() for name in manifest["raw"]}
    for folder, skipped in manifest["folders"].items():
        for path in sorted(locate_file(folder).iterdir()) if locate_file(folder).is_dir() else ():
            if not is_ignored(path.name) and path.name not in skipped and path.absolute() not in read_paths:
                advice = "added since the manifest was written. Remove it, or read it: `ttf report`."
                yield f"{show_path(str(path))}: {advice}"


def _list_products(manifest: Path) -> Iterable[str]:
    try:
        products = read_sealed(manifest).get("products")
    except (Tampered, OSError):
        return ()
    return products if isinstance(products, dict) else ()


def _path_and_parents(file: str) -> set[str]:
    return {file, *map(str, Path(file).parents)}


def success_message(manifest: Manifest) -> str:
    """Return the message for a study without problems: numbers of products, raw files and workflow files."""
    return (
        f"{plural(len(manifest['products']), 'product')} as their rules made them; "
        f"{plural(len(manifest['raw']), 'raw file')} and {plural(len(manifest['code']), 'file')} of the workflow "
        "unchanged."
    )


def _current_digests(manifest: Manifest, files: Iterable[str]) -> dict[str, str | None]:
    """Return the digest of each file, None if missing; a file of another size is not read, except a Python module."""
    sizes = {file: locate_file(file).stat().st_size for file in files if locate_file(file).is_file()}
    same_size = [file for file, size in sizes.items() if file.endswith(".py") or size == manifest.files[file]["size"]]
    digests = dict(zip(same_size, sha256(map(locate_file, same_size)), strict=True))
    digests |= dict.fromkeys(sizes.keys() - same_size, "of another size")
    return {file: digests.get(file) for file in files}


def _find_source_problem(manifest: Manifest, file: str, digest: str | None) -> str | None:
    name, users, recorded = show_path(file), manifest.users(file), manifest.files[file]
    if digest is not None and locate_file(file).is_symlink() and "link" not in recorded:
        return f"{name}: a link was put there. Put the file itself back."
    if digest == recorded["sha256"]:
        return None
    if not users:
        state = "missing" if digest is None else "changed"
        return f"{name}: {state} since the manifest was written. Run `ttf report`."
    affected = plural(len(manifest.products_after(users)), "product")
    if digest is None:
        return f"{name}: missing; {affected} come from it. Put it back, or run `ttf report`."
    rules = sorted({manifest["jobs"][user]["rule"] for user in users})
    rules_text = rules[0] if len(rules) == 1 else f"{rules[0]} and {plural(len(rules) - 1, 'other rule')}"
    return f"{name}: changed since {rules_text} used it; {affected} out of date. Run `ttf report`."


def _find_product_problem(manifest: Manifest, file: str, digest: str | None) -> str | None:
    product, name = manifest["products"][file], show_path(file)
    rule = product["rule"]
    if kind := describe_non_file(locate_file(file)):
        return f"{name}: {kind} was put there. Remove it and run `ttf report`: {rule} makes it again."
    if digest is None:
        return f"{name}: missing. Run `ttf report`: {rule} makes it again."
    if digest == product["sha256"] and "edited" not in product:
        return None
    output = manifest.output(file)
    # An older file was edited, whatever its modification time says.
    if digest != product["sha256"] and (read_end_time(output) or 0) > manifest.written and not is_touched(file, output):
        return f"{name}: made again by {rule} after the manifest was written. Run `ttf report` to update the manifest."
    return f"{name}: edited since {rule} made it. Delete it and run `ttf report`."


def commit_clause(earlier: dict[str, Any], current: dict[str, Any]) -> str:
    """Return a clause on the commit of a study and of the checkout, or "" if git did not know it."""
    if earlier["revision"] is None:
        return ""
    text = f", made at commit {earlier['revision'][:12]}"
    text += ", with uncommitted changes" if earlier.get("changed") else ""
    if current["revision"] not in (None, earlier["revision"]):
        text += f"; the checkout is now at {current['revision'][:12]}"
    return text
