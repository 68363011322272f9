"""Finished studies: the numbers of one, read for `make check` only where nothing of it was edited or is out of date."""

import json
from pathlib import Path

from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal
from ttf.engine.provenance.manifest_graph import Manifest, others_than_made
from ttf.page.checks.changed_numbers import Results
from ttf.page.checks.thresholds import Subject

from study.studies import STUDIES
from study.study_analysis import OF_STUDY
from study.yaml_files import parse_yaml


def earlier(folder: Path) -> Path:
    """The results/ of a folder, or the folder itself. Raises StudyError for one that was published and then edited."""
    if not folder.is_dir():
        raise StudyError(f"AGAINST={folder}: there is no such folder.")
    if (folder / seal.NAME).exists() and (found := seal.problems(folder)):
        more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
        raise StudyError(f"AGAINST={folder}: its files are not as they were published: {found[0]}{more}.")
    root = folder / "results" if (folder / "results").is_dir() else folder
    if not (root / STUDIES.name).is_dir():
        raise StudyError(
            f"AGAINST={folder}: holds no results; expected an unpacked archive (make archive), or a copy of results/."
        )
    return root


def results_of(root: Path, name: str, verified: bool = False) -> Results:
    """The numbers of a study whose results/ is `root`. verified: nothing of the study is edited or out of date.

    Raises StudyError where its numbers are not those that its manifest has.
    """
    own = root / STUDIES.name / name
    if not own.is_dir():
        there = sorted(path.name for path in own.parent.iterdir() if path.is_dir())
        raise StudyError(f"{root}: holds no study {name}; it has {', '.join(there) or 'none'}. STUDY=name for another.")
    manifest = Manifest.read(own / "manifest.json") if verified or (own / "manifest.json").exists() else None
    if verified and (found := others_than_made(manifest)):
        more = f" ({len(found) - 1:,} more: make verify)" if len(found) > 1 else ""
        raise StudyError(
            f"study {name}: its results are edited or out of date, so no number is judged: {found[0]}{more}"
        )
    files = {path.parent.name: path for path in sorted(root.glob("*/metrics.json"))}
    if (of_all := own / OF_STUDY / "metrics.json").is_file():
        files[OF_STUDY] = of_all
    if manifest is None:
        return Results({subject: numbers_in(file) for subject, file in files.items()})
    paths = {subject: f"results/{file.relative_to(root)}" for subject, file in files.items()}
    # Other studies lie beside it.
    paths = {subject: path for subject, path in paths.items() if path in manifest["products"]}
    for subject, path in paths.items():
        if seal.digest_of(files[subject]) != manifest["products"][path]["sha256"]:
            raise StudyError(f"{files[subject]}: edited since it was made; its manifest has another SHA-256.")
    written = manifest["jobs"].get("write_config", {}).get("parameters", {}).get("text", "")
    numbers = {subject: numbers_in(files[subject]) for subject in paths}
    return Results(numbers, paths, manifest, parse_yaml(str(written), "config.yaml") or {})


def numbers_in(file: Path) -> dict[str, dict]:
    """The numbers of a metrics.json. Raises StudyError for any other file."""
    try:
        numbers = json.loads(file.read_text(encoding="utf-8"))
        if all(about.keys() >= {"value", "unit", "n", "source"} for about in numbers.values()):
            return numbers
    except (ValueError, AttributeError, RecursionError):
        pass
    raise StudyError(
        f"{file}: is no metrics.json of a study: expected numbers by key, each with value, unit, n, source."
    )


def subject_of(name: str, results: Results) -> Subject:
    brief = Path(results.paths[name]).with_name("brief.json")
    withheld = json.loads(brief.read_text(encoding="utf-8"))["withheld"] if brief.is_file() else {}
    return Subject(name, results.metrics[name], withheld)
