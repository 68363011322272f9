"""SHA-256 of files and folders, and whether a product is still what its rule left behind."""

import contextlib
import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ttf.engine.provenance.syntax import syntax_of

CHECKOUT = Path(__file__).resolve().parents[4]
SNAKEMAKE = Path(".snakemake")
MEMORY = SNAKEMAKE / "sha256.json"
# Which Snakemake leaves in a folder that a rule made.
TIMESTAMP = ".snakemake_timestamp"
# What has a part in results though no job is given it: rules, formats, schemas, settings, what pages are made of.
WORKFLOW = ("Snakefile", "workflow", "scripts", "config", "report")
FETCHED = "workflow/files.txt"
# Neither the list of what a module fetches has a part in results, nor what `make check` holds them against.
_NO_PART = (FETCHED, "config/thresholds.yaml")


def name_of(path: str) -> str:
    """The name of a file in the manifest: of the checkout's own files from there, of all others as they were given."""
    here = Path.cwd()
    # Of a workflow that was fetched from elsewhere the files lie below the folder of the study.
    seen = here / path if here != CHECKOUT and CHECKOUT.is_relative_to(here) else Path(path)
    return str(seen.relative_to(CHECKOUT)) if seen.is_relative_to(CHECKOUT) else path


def located(name: str) -> Path:
    """The file of a name: seen from here, else in the checkout."""
    here = Path(name)
    return here if here.exists() else CHECKOUT / name


def members(path: str) -> list[str]:
    """The file, or all files of a folder and its subfolders, sorted."""
    if not Path(path).is_dir():
        return [path]
    return sorted(str(file) for file in Path(path).rglob("*") if file.is_file() and file.name != TIMESTAMP)


def of_workflow() -> list[str]:
    """The names of the workflow's own files, sorted, used by a study or not."""
    found = [file for name in WORKFLOW for file in members(str(CHECKOUT / name))]
    names = [str(Path(file).relative_to(CHECKOUT)) for file in found]
    # Neither what Python compiles nor what an editor or Snakemake puts there.
    return sorted(
        name
        for name in names
        if name not in _NO_PART and not any(part[0] == "." or part == "__pycache__" for part in name.split("/"))
    )


def stamp_of_workflow() -> str:
    """One digest of all of these, by which Snakemake sees that the manifest is of another state of them."""
    names = of_workflow()
    digests = zip(names, sha256(CHECKOUT / name for name in names), strict=True)
    return hashlib.sha256("".join(f"{digest}  {name}\n" for name, digest in digests).encode()).hexdigest()


def of_folder(path: str, digests: dict[str, str]) -> str:
    """One digest of a folder: of the names and digests of its files."""
    lines = (f"{digests[file]}  {Path(file).relative_to(path)}\n" for file in members(path))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def sha256(paths: Iterable[Path]) -> list[str]:
    """The digest of each file, several at a time; of a Python module that of its syntax."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(_sha256, paths))


def _sha256(path: Path) -> str:
    if path.suffix == ".py":
        with contextlib.suppress(SyntaxError, ValueError):
            return syntax_of(path).digest
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Memory:
    """Digests of files as they were last seen in good order, so that raw files of many GB are read once per change."""

    def __init__(self, file: Path):
        self._file = file
        try:
            self._seen = dict(json.loads(file.read_text(encoding="utf-8")))
            if not all(isinstance(seen, list) and len(seen) == 3 for seen in self._seen.values()):
                self._seen = {}
        except (OSError, ValueError, TypeError, RecursionError):
            self._seen = {}

    def digests(self, paths: Iterable[str]) -> dict[str, str]:
        """Path -> digest; a file is read only if its size or time of change is another than when it was kept."""
        paths = list(paths)
        unread = [path for path in paths if self._seen.get(path, [])[:2] != _state(path)]
        read = dict(zip(unread, sha256(Path(path) for path in unread), strict=True))
        return {path: read.get(path) or self._seen[path][2] for path in paths}

    def last(self, path: str) -> str | None:
        """The digest of the file when it was last kept."""
        return self._seen[path][2] if path in self._seen else None

    def keep(self, digests: dict[str, str]) -> None:
        self._seen |= {path: [*_state(path), digest] for path, digest in digests.items()}
        unfinished = self._file.with_suffix(".new")
        unfinished.write_text(json.dumps(self._seen), encoding="utf-8")
        unfinished.replace(self._file)


def is_intact(path: str) -> bool:
    """Whether a product is there as the last manifest has it, in which it was not edited."""
    return Path(path).is_file() and Memory(MEMORY).last(path) == _sha256(Path(path))


def _state(path: str) -> list[int]:
    status = Path(path).stat()
    return [status.st_size, status.st_mtime_ns]


def made_at(output: str) -> float | None:
    """The time of change of a rule's output when Snakemake saw it finished; None where it keeps no record."""
    try:
        return json.loads(_record(output).read_text(encoding="utf-8"))["endtime"]
    except (OSError, ValueError, KeyError):
        return None


def made_by_a_rule(file: str) -> bool:
    """Whether Snakemake keeps a record of the file, or of a folder that it is in."""
    return any(_record(output).is_file() for output in (file, *map(str, Path(file).parents[:-1])))


def _record(output: str) -> Path:
    name = urlsafe_b64encode(output.encode()).decode()
    # As snakemake.persistence.file does: a name too long for one file is spread over folders.
    parts = [name[start : start + 254] for start in range(0, len(name), 254)]
    return SNAKEMAKE.joinpath("metadata", *(f"@{part}" for part in parts[:-1]), parts[-1])


def touched(file: str, output: str) -> bool:
    """Whether a file was written after the rule whose output it is, or is in, had finished; False if unknown."""
    finished = made_at(output)
    if finished is None:
        return False
    later = Path(file).stat().st_mtime - finished
    # A folder is finished after its files.
    return later > 0.001 or (file == output and later < -0.001)
