"""The manifest as a graph: which job made a file, and what follows from one; and whether files are still as it says."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal
from ttf.engine.provenance.digests import (
    CHECKOUT,
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
from ttf.engine.provenance.seal import NotIntact, is_inside, printable, unsealed
from ttf.engine.storage.plain_files import is_ignored, what_lies_at
from ttf.engine.words import plural

# The folder of a study has one of these at least.
_OF_A_STUDY = ("config.yaml", "study.yaml", "manifest.json")
_ANEW = "Delete it and run `make report`."
_FORM = CHECKOUT / "workflow" / "schemas" / "manifest.yaml"


class Manifest(dict):
    """manifest.json of a study as ttf.engine.provenance.manifest wrote it. written: when, in s since 1970."""

    written = 0.0

    @classmethod
    def read(cls, file: Path) -> "Manifest":
        """Raises NotIntact where it is not as it was written, StudyError where there is none."""
        try:
            # The manifests of version 1.0.0 have no folders.
            found = cls({"folders": {}} | unsealed(file))
        except FileNotFoundError:
            raise StudyError(f"{file}: there is no manifest yet. Run `make report`, which writes it.") from None
        except NotIntact as error:
            raise NotIntact(f"{error}. {_ANEW}") from None
        form = Draft202012Validator(yaml.safe_load(_FORM.read_text(encoding="utf-8")))
        if not form.is_valid(found) or not all(map(found.is_product, found["products"])):
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


def problems(manifest: Manifest, own: Path) -> list[str]:
    """A line for each file that is not as the manifest has it, with what to do; raw files and code before products, and
    last what was added. own: the folder of the study, results/studies/<name>.
    """
    return [*others_than_made(manifest), *_added(manifest, own)]


def others_than_made(manifest: Manifest) -> list[str]:
    """The same without what was added: nothing in the manifest comes from that."""
    now = _digests_now(manifest, manifest.files)
    lines = [_source(manifest, file, now[file]) for file in [*manifest["raw"], *manifest["code"]]]
    lines += [_product(manifest, file, now[file]) for file in manifest["products"]]
    return [*filter(None, lines)]


def not_as_made(manifest: Manifest, files: Iterable[str]) -> list[str]:
    """A line for each of these files that is not a product as its rule made it, with what to do."""
    files = list(files)
    now = _digests_now(manifest, [file for file in files if file in manifest["products"]])
    added = "no rule of the study made it. Remove it."
    lines = [_product(manifest, file, now[file]) if file in now else f"{printable(file)}: {added}" for file in files]
    return [*filter(None, lines)]


def _added(manifest: Manifest, own: Path) -> Iterator[str]:
    """A line for each file that came to the workflow, to a folder of raw tables or to the results, and for each file of
    a folder with a list of its own, such as a site, that is not as the list has it.
    """
    for name in of_workflow():
        if name not in manifest["code"]:
            yield f"{printable(name)}: added to the workflow since the manifest was written. Run `make report`."
    yield from _added_to_raw(manifest)
    lists = sorted(own.glob(f"*/{seal.NAME}"))
    yield from _added_to_results(manifest, own, {file.parent for file in lists})
    for file in lists:
        yield from (f"{file.parent}/{line}" for line in seal.problems(file.parent))


def _added_to_results(manifest: Manifest, own: Path, with_list: set[Path]) -> Iterator[str]:
    """A line for each file that no study has, no rule made and `make score` did not write.

    with_list: folders of which a list tells what is no file.
    """
    studies, results, memory = own.parent, own.parents[1], Memory(MEMORY)
    other_studies = {file.parent for name in _OF_A_STUDY for file in studies.glob(f"*/{name}")} - {own}
    outputs = {output for job in manifest["jobs"].values() for output in job["outputs"]}
    known = {str(results / ".gitkeep"), str(own / "manifest.json"), str(own / "study.yaml"), *manifest["products"]}
    known.update(*(_products_of(folder / "manifest.json") for folder in other_studies))
    for path in sorted(seal.there(results)):
        file, above = results / path, {*(results / path).parents}
        # Itself, or what it is the signature of.
        subjects = {str(file), *(str(file).removesuffix(ending) for ending in seal.SIGNATURES)}
        if subjects & known or other_studies & above or file.name == TIMESTAMP:
            continue
        name, last = printable(str(file)), memory.last(str(file))
        if kind := what_lies_at(file):
            if not with_list & above:
                yield f"{name}: {kind} was put there. Remove it."
        elif outputs & _ways(str(file)) or (last is None and not any(map(made_by_a_rule, subjects))):
            yield f"{name}: added; no rule of the study made it. Remove it."
        elif not any(map(made_by_a_rule, subjects)) and last != seal.digest_of(file):
            yield f"{name}: edited since `make score` wrote it. Remove it."


def _added_to_raw(manifest: Manifest) -> Iterator[str]:
    """A line for each file that came into a folder of raw tables; the study read the others, or left them out."""
    read = {located(name).absolute() for name in manifest["raw"]}
    for folder, left_out in manifest["folders"].items():
        for path in sorted(located(folder).iterdir()) if located(folder).is_dir() else ():
            if not is_ignored(path.name) and path.name not in left_out and path.absolute() not in read:
                yield f"{printable(str(path))}: added since the manifest was written. Run `make report`, or remove it."


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


def _digests_now(manifest: Manifest, files: Iterable[str]) -> dict[str, str | None]:
    """The digest of each file; None where there is none. One of another size than it had is not read, but of a Python
    module, of which the syntax counts.
    """
    sizes = {file: located(file).stat().st_size for file in files if located(file).is_file()}
    same = [file for file, size in sizes.items() if file.endswith(".py") or size == manifest.files[file]["size"]]
    found = dict(zip(same, sha256(map(located, same)), strict=True)) | dict.fromkeys(
        sizes.keys() - same, "of another size"
    )
    return {file: found.get(file) for file in files}


def _source(manifest: Manifest, file: str, digest: str | None) -> str | None:
    name, users, about = printable(file), manifest.users(file), manifest.files[file]
    if digest is not None and located(file).is_symlink() and "link" not in about:
        return f"{name}: a link was put there. Put the file itself back."
    if digest == about["sha256"]:
        return None
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
