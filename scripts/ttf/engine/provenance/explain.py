"""The chain from a product, or from a number of the report, back to the raw files, as an indented tree."""

import json
import textwrap
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ttf.engine.errors import StudyError
from ttf.engine.provenance.digests import located, name_of, sha256
from ttf.engine.provenance.manifest_graph import Manifest
from ttf.engine.words import plural

# A parameter is shown up to this length, a list of texts up to so many of them.
_LONGEST = 60
_MOST_TEXTS = 3
_MOST_NAMES = 5


def explain(
    manifest: Manifest, file: str | None, key: str | None = None, verbose: bool = True, width: int = 100
) -> str:
    """Explain where a product, or with a key a number of a metrics.json, comes from.

    Of a product, and of a number if verbose: the tree of jobs down to the raw files, each job once. Of a number else:
    its cell, the job that made the table, and the raw files. No file: the first metrics.json of the study with the key.
    Raises StudyError for a file that the manifest does not hold and for a key that is not in the file.
    """
    file = _metrics_with(manifest, key) if file is None else _known(manifest, file)
    tree = _Tree(manifest, width)
    if key is None:
        tree.product(file)
    else:
        tree.number(file, key, verbose)
    return "\n".join(tree.lines)


def _metrics_with(manifest: Manifest, key: str | None) -> str:
    files = [name for name in manifest["products"] if name.endswith("/metrics.json")]
    if key is None or not files:
        raise StudyError("say FILE=results/..., KEY=number or both.")
    return next((file for file in files if key in json.loads(Path(file).read_text(encoding="utf-8"))), files[0])


def _known(manifest: Manifest, file: str) -> str:
    name = name_of(file.removeprefix("./"))
    own = Path(next(iter(manifest["configuration"]), "results/config.yaml")).parent
    for candidate in (name, f"results/{name}", f"{own}/{name}"):
        if candidate in manifest["products"] or candidate in manifest.maker:
            return candidate
    near = get_close_matches(name, manifest["products"], n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(near)}?" if near else " manifest.json of the study lists all products."
    raise StudyError(f"{file}: not a product of the study.{hint}")


class _Tree:
    def __init__(self, manifest: Manifest, width: int):
        self.lines: list[str] = []
        self._manifest, self._width, self._told = manifest, width, set()

    def number(self, file: str, key: str, verbose: bool) -> None:
        numbers = json.loads(Path(file).read_text(encoding="utf-8")) if file.endswith("metrics.json") else {}
        if not numbers:
            raise StudyError(
                f"{file}: holds no numbers by key; those of the report stand in results/<trace>/metrics.json."
            )
        if key not in numbers:
            near = get_close_matches(key, numbers, n=3, cutoff=0.5)
            raise StudyError(f"{file}: no number {key}." + (f" Did you mean {' or '.join(near)}?" if near else ""))
        about = numbers[key]
        n = "" if about["n"] is None else f" (n = {about['n']:,})"
        self._write(0, f"{key} = {about['value']} {about['unit']}{n}, in {file}")
        source = str(Path(file).parent / about["source"])
        cell = f"the cell {about['column']}" + (f" in line {about['line']}" if about["line"] else "")
        self._write(1, f"is {cell} of {self._named(source)}")
        if verbose:
            self.product(source, 1, "from ")
            return
        job = self._manifest["jobs"][self._manifest.maker[source]]
        inputs = [Path(name).name for name in _behind(source, job["inputs"]) if name not in self._manifest["code"]]
        self._write(1, f"made by {job['rule']} ({job['script']}) from {_listed(inputs)}")
        self._write(1, f"of the raw files {_listed(self._raw_behind(source))}")
        self._write(1, "VERBOSE=1 shows every job and file between.")

    def _raw_behind(self, product: str) -> list[str]:
        """The raw files that a product was made from, by name."""
        files, seen = [product], set()
        while files:
            if (file := files.pop()) in seen:
                continue
            seen.add(file)
            if (maker := self._manifest.maker.get(file)) is not None:
                files += _behind(file, self._manifest["jobs"][maker]["inputs"])
        return sorted(seen & set(self._manifest["raw"]))

    def product(self, file: str, depth: int = 0, words: str = "") -> None:
        """A product, the job that made it and what the job was given."""
        self._write(depth, words + self._named(file))
        self._job(self._manifest.maker[file], depth + 1, file)

    def _job(self, name: str, depth: int, file: str = "") -> None:
        job = self._manifest["jobs"][name]
        if name in self._told:
            self._write(depth, f"by {job['rule']} (see above)")
            return
        self._told.add(name)
        self._write(depth, f"by {job['rule']}: {self._code(job)}")
        parameters = "; ".join(
            f"{key} = {_short(value)}" for key, value in job["parameters"].items() if value not in (None, [], {})
        )
        if parameters:
            self._write(depth, f"with {parameters}")
        self._inputs(_behind(file, job["inputs"]), depth + 1)

    def _inputs(self, inputs: list[str], depth: int) -> None:
        """What a job was given: products by the job that made them, raw files one by one, texts of the workflow."""
        by_maker: dict[str | None, list[str]] = {}
        for file in inputs:
            if file not in self._manifest["code"]:
                by_maker.setdefault(self._manifest.maker.get(file), []).append(file)
        for maker, files in by_maker.items():
            raw = [file for file in files if file in self._manifest["raw"]]
            for file in raw:
                self._write(depth, f"from {self._named(file)}, raw")
            if made := [file for file in files if file not in raw]:
                self._write(depth, f"from {self._named(made[0]) if len(made) == 1 else ', '.join(made)}")
            if maker is not None:
                self._job(maker, depth + 1)
        texts = [file for file in inputs if file in self._manifest["code"]]
        if texts:
            more = "" if len(texts) <= _MOST_TEXTS else f" and {len(texts) - _MOST_TEXTS} more"
            self._write(depth, f"from {', '.join(texts[:_MOST_TEXTS])}{more} of the workflow")

    def _named(self, file: str) -> str:
        """A file with its size and the first of its digest, and whether it is another now; a folder by its name."""
        about = self._manifest.files.get(file)
        if about is None:
            return file
        now = next(iter(sha256([located(file)])), None) if located(file).is_file() else None
        state = "" if now == about["sha256"] else " (missing)" if now is None else " (edited since)"
        return f"{file}{state}, {about['size']:,} bytes, sha256 {about['sha256'][:12]}"

    def _code(self, job: dict[str, Any]) -> str:
        modules = len(job["code"]) - 1
        return f"{job['script']} and {plural(modules, 'module')}" if modules else job["script"]

    def _write(self, depth: int, text: str) -> None:
        indent = "  " * depth
        self.lines += textwrap.wrap(
            "".join(letter if letter.isprintable() else "?" for letter in text),  # a value may come from a trace
            max(self._width, len(indent) + 40),
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _behind(file: str, inputs: list[str]) -> list[str]:
    """What a product was made of: of all charts that one job draws as pictures, a picture shows its own alone."""
    chart = f"{file.rpartition('.')[0]}.vl.json"
    return (
        [given for given in inputs if given == chart or not given.endswith(".vl.json")] if chart in inputs else inputs
    )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}" if names else "none"


def _short(value: Any) -> str:
    text = " ".join(json.dumps(value, ensure_ascii=False).replace('"', "").split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
