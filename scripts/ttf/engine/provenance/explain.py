"""The origin of a product or a number of the report, back to the raw files, as an indented tree."""

import json
import textwrap
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ttf.engine.errors import StudyError
from ttf.engine.provenance.digests import locate_file, manifest_name, sha256
from ttf.engine.provenance.manifest_graph import Manifest
from ttf.engine.provenance.seal import show_path
from ttf.engine.words import plural

# Limits of the display: characters of a parameter, files of the workflow, names in a list.
_MAX_VALUE_LENGTH = 60
_MAX_TEXTS = 3
_MAX_NAMES = 5


def explain(
    manifest: Manifest, file: str | None, key: str | None = None, verbose: bool = True, width: int = 100
) -> str:
    """Explain the origin of a product, or with `key` of a number in a metrics.json.

    Products, and numbers if verbose, get the tree of jobs down to the raw files, each job once. Otherwise a number gets
    its cell, the job of its table, and the raw files. Without `file`, the first metrics.json with the key is used.
    Raises StudyError for a file that is not in the manifest, and for an unknown key.
    """
    file = _find_metrics_file(manifest, key) if file is None else _find_product_name(manifest, file)
    tree = _Tree(manifest, width)
    if key is None:
        tree.write_product(file)
    else:
        tree.write_number(file, key, verbose)
    return "\n".join(tree.lines)


def _find_metrics_file(manifest: Manifest, key: str | None) -> str:
    files = [name for name in manifest["products"] if name.endswith("/metrics.json")]
    if key is None or not files:
        raise StudyError("name a file below results/, --key and a number, or both.")
    return next((file for file in files if key in json.loads(Path(file).read_text(encoding="utf-8"))), files[0])


def _find_product_name(manifest: Manifest, file: str) -> str:
    name = manifest_name(file.removeprefix("./"))
    study_folder = Path(next(iter(manifest["configuration"]), "results/config.yaml")).parent
    for candidate in (name, f"results/{name}", f"{study_folder}/{name}"):
        if candidate in manifest["products"] or candidate in manifest.maker:
            return candidate
    hint = _suggest(name, manifest["products"], 0.6) or " manifest.json of the study lists all products."
    raise StudyError(f"{show_path(file)}: not a product of the study.{hint}")


def _suggest(name: str, names: Iterable[str], cutoff: float) -> str:
    matches = get_close_matches(name, names, n=3, cutoff=cutoff)
    return f" Did you mean {' or '.join(matches)}?" if matches else ""


class _Tree:
    def __init__(self, manifest: Manifest, width: int) -> None:
        self.lines: list[str] = []
        self._shown_jobs: set[str] = set()
        self._manifest, self._width = manifest, width

    def write_number(self, file: str, key: str, verbose: bool) -> None:
        """Write a number and its cell, then the tree of its table if verbose, else the job and the raw files."""
        numbers = json.loads(Path(file).read_text(encoding="utf-8")) if file.endswith("metrics.json") else {}
        if not numbers:
            raise StudyError(
                f"{file}: holds no numbers by key; those of the report are in results/<trace>/metrics.json."
            )
        if key not in numbers:
            raise StudyError(f"{file}: no number {show_path(key)}.{_suggest(key, numbers, 0.5)}")
        cell_info = numbers[key]
        n = "" if cell_info["n"] is None else f" (n = {cell_info['n']:,})"
        self._write_wrapped(0, f"{key} = {cell_info['value']} {cell_info['unit']}{n}, in {file}")
        if definition := cell_info.get("definition"):  # results of an earlier version have none
            self._write_wrapped(1, f"means: {definition}")
        source = str(Path(file).parent / cell_info["source"])
        cell = f"the cell {cell_info['column']}" + (f" in line {cell_info['line']}" if cell_info["line"] else "")
        self._write_wrapped(1, f"is {cell} of {self._describe_file(source)}")
        if verbose:
            self.write_product(source, 1, "from ")
            return
        job = self._manifest["jobs"][self._manifest.maker[source]]
        code = self._manifest["code"]
        inputs = [Path(name).name for name in _relevant_inputs(source, job["inputs"]) if name not in code]
        self._write_wrapped(1, f"made by {job['rule']} ({job['script']}) from {_join_names(inputs)}")
        self._write_wrapped(1, f"of the raw files {_join_names(self._find_raw_files(source))}")
        self._write_wrapped(1, "--verbose shows every job and file in between.")

    def _find_raw_files(self, product: str) -> list[str]:
        """Return the names of the raw files behind a product, sorted."""
        files, visited = [product], set()
        while files:
            if (file := files.pop()) in visited:
                continue
            visited.add(file)
            if (maker := self._manifest.maker.get(file)) is not None:
                files += _relevant_inputs(file, self._manifest["jobs"][maker]["inputs"])
        return sorted(visited & set(self._manifest["raw"]))

    def write_product(self, file: str, depth: int = 0, prefix: str = "") -> None:
        """Write a line for a product, then the job that made it and the inputs of the job."""
        self._write_wrapped(depth, prefix + self._describe_file(file))
        self._write_job(self._manifest.maker[file], depth + 1, file)

    def _write_job(self, name: str, depth: int, file: str = "") -> None:
        """Write a job and its inputs, only those of the product `file` if named; only once in the tree."""
        job = self._manifest["jobs"][name]
        if name in self._shown_jobs:
            self._write_wrapped(depth, f"by {job['rule']} (see above)")
            return
        self._shown_jobs.add(name)
        modules = len(job["code"]) - 1
        code = f"{job['script']} and {plural(modules, 'module')}" if modules else job["script"]
        self._write_wrapped(depth, f"by {job['rule']}: {code}")
        parameters = {key: value for key, value in job["parameters"].items() if value not in (None, [], {})}
        if parameters:
            self._write_wrapped(
                depth, f"with {'; '.join(f'{key} = {_shorten_value(parameters[key])}' for key in parameters)}"
            )
        self._write_inputs(_relevant_inputs(file, job["inputs"]), depth + 1)

    def _write_inputs(self, inputs: list[str], depth: int) -> None:
        """Write the inputs of a job: products by their job, raw files one by one, files of the workflow."""
        files_by_maker: dict[str | None, list[str]] = {}
        for file in inputs:
            if file not in self._manifest["code"]:
                files_by_maker.setdefault(self._manifest.maker.get(file), []).append(file)
        for maker, files in files_by_maker.items():
            raw = [file for file in files if file in self._manifest["raw"]]
            for file in raw:
                self._write_wrapped(depth, f"from {self._describe_file(file)}, raw")
            if products := [file for file in files if file not in raw]:
                description = self._describe_file(products[0]) if len(products) == 1 else ", ".join(products)
                self._write_wrapped(depth, f"from {description}")
            if maker is not None:
                self._write_job(maker, depth + 1)
        if texts := [file for file in inputs if file in self._manifest["code"]]:
            self._write_wrapped(depth, f"from {_join_names(texts, _MAX_TEXTS)} of the workflow")

    def _describe_file(self, file: str) -> str:
        recorded = self._manifest.files.get(file)
        if recorded is None:
            return file
        digest = next(iter(sha256([locate_file(file)])), None) if locate_file(file).is_file() else None
        state = "" if digest == recorded["sha256"] else " (missing)" if digest is None else " (edited since)"
        return f"{file}{state}, {recorded['size']:,} bytes, sha256 {recorded['sha256'][:12]}"

    def _write_wrapped(self, depth: int, text: str) -> None:
        indent = "  " * depth
        self.lines += textwrap.wrap(
            "".join(letter if letter.isprintable() else "?" for letter in text),  # a value may come from a trace
            max(self._width, len(indent) + 40),
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _relevant_inputs(file: str, inputs: list[str]) -> list[str]:
    """Return the inputs of one product: a drawing depends only on its own chart among the charts of its job."""
    chart = f"{file.rpartition('.')[0]}.vl.json"
    return [name for name in inputs if name == chart or not name.endswith(".vl.json")] if chart in inputs else inputs


def _join_names(names: list[str], max_names: int = _MAX_NAMES) -> str:
    hidden = f" and {len(names) - max_names} more" if len(names) > max_names else ""
    return f"{', '.join(names[:max_names])}{hidden}" if names else "none"


def _shorten_value(value: Any) -> str:
    text = " ".join(json.dumps(value, ensure_ascii=False).replace('"', "").split())
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"
