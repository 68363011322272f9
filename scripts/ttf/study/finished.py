"""Finished studies: their numbers, read for `ttf check` only if nothing of the study is edited or out of date."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ttf.analyses import built_in_folders
from ttf.analyses.sections import THEMES
from ttf.display.phrases import list_keys
from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal
from ttf.engine.provenance.manifest_graph import Manifest, find_changed_files
from ttf.page.brief.stratum_tiles import KEY_BY_TILE
from ttf.page.checks.changed_numbers import Results
from ttf.page.checks.thresholds import Subject
from ttf.study.configuration.yaml_files import parse_yaml
from ttf.study.publication import remove_paths
from ttf.study.studies import STUDIES


def find_results_folder(folder: Path) -> Path:
    """Return the results/ of a folder, or the folder itself. Raises StudyError for an edited publication."""
    if not folder.is_dir():
        raise StudyError(f"--against {folder}: there is no such folder.")
    if (folder / seal.NAME).exists() and (problems := seal.find_problems(folder)):
        count_note = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
        raise StudyError(f"--against {folder}: files changed since publication: {problems[0]}{count_note}.")
    root = folder / "results" if (folder / "results").is_dir() else folder
    if not (root / STUDIES.name).is_dir():
        raise StudyError(
            f"--against {folder}: contains no results; expected an unpacked archive or a copy of results/."
        )
    return root


def read_results(root: Path, name: str, is_verified: bool = False) -> Results:
    """Return the numbers of a study in the folder `root`. is_verified: check that nothing is edited or out of date.

    Raises StudyError if the numbers differ from those in its manifest.
    """
    study_folder = root / STUDIES.name / name
    if not study_folder.is_dir():
        studies = sorted(path.name for path in study_folder.parent.iterdir() if path.is_dir())
        raise StudyError(f"{root}: contains no study {name}, but {', '.join(studies) or 'none'}. Choose by --study.")
    manifest_file = study_folder / "manifest.json"
    manifest = Manifest.read(manifest_file) if is_verified or manifest_file.exists() else None
    if is_verified and manifest is not None and (changed_products := find_changed_files(manifest)):
        count_note = f" ({len(changed_products) - 1:,} more: ttf verify)" if len(changed_products) > 1 else ""
        raise StudyError(
            f"study {name}: results are edited or out of date, so numbers are not checked: "
            f"{changed_products[0]}{count_note}"
        )
    files = {path.parent.name: path for path in sorted(root.glob("*/metrics.json"))}
    if manifest is None:
        return Results({subject: read_numbers(file) for subject, file in files.items()})
    paths = {subject: f"results/{file.relative_to(root)}" for subject, file in files.items()}
    # The folder may contain other studies.
    paths = {subject: path for subject, path in paths.items() if path in manifest["products"]}
    for subject, path in paths.items():
        if seal.file_digest(files[subject]) != manifest["products"][path]["sha256"]:
            raise StudyError(f"{files[subject]}: edited since it was made; the manifest has another SHA-256.")
    config_text = manifest["jobs"].get("write_config", {}).get("parameters", {}).get("text", "")
    numbers = {subject: read_numbers(files[subject]) for subject in paths}
    # A new raw file is other data, not another configuration.
    configuration = remove_paths({"registry": {}, **(parse_yaml(str(config_text), "config.yaml") or {})})
    return Results(numbers, paths, manifest, configuration)


def read_numbers(file: Path) -> dict[str, dict]:
    """Return the numbers of a metrics.json. Raises StudyError for any other file."""
    try:
        numbers = json.loads(file.read_text(encoding="utf-8"))
        if all(number_info.keys() >= {"value", "unit", "n", "source"} for number_info in numbers.values()):
            return numbers
    except (ValueError, AttributeError, RecursionError):
        pass
    raise StudyError(f"{file}: is not the metrics.json of a study: expected value, unit, n, source of each number.")


def read_subject(name: str, results: Results) -> Subject:
    """Return the numbers of a trace, with the figures that its brief withholds."""
    return make_subject(Path(results.paths[name]).parent, results.metrics[name])


def make_subject(folder: Path, numbers: Mapping[str, Mapping[str, Any]]) -> Subject:
    """Return the numbers of the trace with its results in this folder, with the figures that its brief withholds."""
    brief = folder / "brief.json"
    withheld = json.loads(brief.read_text(encoding="utf-8"))["withheld"] if brief.is_file() else {}
    return Subject(folder.name, numbers, withheld, folder)


def find_section(number: str, name: str, results: Results) -> str:
    """Return title and link of a number's section on the page: its tile's, else its analysis's; "" without one."""
    if results.manifest is None or number not in results.metrics[name]:
        return ""
    products, brief = results.manifest["products"], Path(results.paths[name]).with_name("brief.json")
    pages = [f"/report/{page}.html" for page in (f"trace-{name}", name, "index")]
    page = next((product for end in pages for product in products if product.endswith(end)), None)
    tiles = json.loads(brief.read_text(encoding="utf-8"))["tiles"] if brief.is_file() else []
    anchors = [tile["link"] for tile in tiles if number in (KEY_BY_TILE.get(tile["name"]), *list_keys(tile["value"]))]
    maker = products.get(str(Path(results.paths[name]).parent / results.metrics[name][number]["source"]), {}).get(
        "rule"
    )
    anchors += [THEMES[folder.parent.name].anchor for rule, folder in built_in_folders().items() if rule == maker]
    theme = next((theme for theme in THEMES.values() if theme.anchor in anchors[:1]), None)
    if page is None or theme is None or f'id="{theme.anchor}"' not in Path(page).read_text(encoding="utf-8"):
        return ""
    return f"{theme.title}: {page}#{theme.anchor}"
