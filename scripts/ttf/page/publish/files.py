"""The published files with their descriptions."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ttf.engine.contract import Column, Table
from ttf.engine.storage.tables import read_without_renaming
from ttf.engine.words import plural
from ttf.page.publish.pseudonyms import escape_formulas

MEDIA_TYPES = {
    ".bib": "application/x-bibtex",
    ".cff": "application/yaml",
    ".css": "text/css",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".qmd": "text/markdown",
    ".sh": "application/x-sh",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_DESCRIPTIONS = {
    "config.yaml": "The configuration of the study",
    "manifest.json": "The rule, script, parameters and inputs of each file, with SHA-256",
    "sbom.cdx.json": "The packages of the environment with versions and SHA-256: a bill of materials, CycloneDX",
    "metrics.json": "Every number of the report: value, unit, n, source",
    "brief.json": "The first screen of the report: findings, withheld estimates and actions",
}


@dataclass(frozen=True)
class PackedFile:
    """A published file. path: in the site or archive. name, description: for its list of files. columns: of a table."""

    path: str
    content: bytes
    name: str
    description: str
    columns: Mapping[str, Column] = field(default_factory=dict)

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES.get(Path(self.path).suffix, "text/plain")

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def original_product(path: Path, study_folder: Path) -> Path:
    """Return the product that a file below the study's folder publishes: itself, or the original of a copy."""
    hidden = study_folder / "published"
    return study_folder.parents[1] / path.relative_to(hidden) if path.is_relative_to(hidden) else path


def published_path(path: Path, study_folder: Path) -> str:
    """Return the published path of a product: relative to the study folder, else starting with the trace."""
    path = original_product(path, study_folder)
    return path.relative_to(study_folder if path.is_relative_to(study_folder) else study_folder.parents[1]).as_posix()


def read_published_content(source: Path, table: Table | None) -> bytes:
    """Return the published bytes: tables hold no text that spreadsheets evaluate."""
    content = source.read_bytes()
    if table is None or source.suffix != ".csv":
        return content
    frame, table = read_without_renaming(source, table)
    escaped = escape_formulas(frame, table)
    return content if escaped.equals(frame) else escaped.write_csv().encode()


def find_contract(path: str, tables: Mapping[str, Table]) -> Table | None:
    """Return the contract of the table at a path below any folder. tables: path of a product -> contract."""
    parts = Path(path).parts
    suffixes = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((tables[suffix] for suffix in suffixes if suffix in tables), None)


def read_chart_texts(indexes: Iterable[Path]) -> dict[str, dict]:
    """Return folder/name of each chart -> title, caption and text alternative, from the chart indexes."""
    return {
        f"{index.parent}/{name}": entry
        for index in indexes
        for name, entry in json.loads(index.read_text(encoding="utf-8")).items()
    }


def describe_file(source: Path, path: str, charts: Mapping[str, Mapping], tables: Mapping[str, Table]) -> PackedFile:
    """Return the file at `source` to publish as `path`, with its chart's title or its contract's description."""
    table = find_contract(path, tables)
    content = read_published_content(source, table)
    name = Path(path).name
    stem = name.split(".")[0]
    chart = charts.get(f"{source.parent}/{stem}")
    if chart and not chart["empty"]:
        return PackedFile(path, content, chart["title"], chart["caption"])
    if chart:
        return PackedFile(path, content, stem.replace("_", " "), f"Nothing to draw: {chart['empty']}.")
    if table:
        frame, table = read_without_renaming(source, table)
        description = f"{table.description} {plural(frame.height, 'row')} of {', '.join(frame.columns)}"
        return PackedFile(path, content, stem.replace("_", " "), description, table.columns)
    return PackedFile(path, content, stem.replace("_", " "), _DESCRIPTIONS.get(name, ""))


def describe_report_page(source: Path, path: str) -> PackedFile:
    """Return a page of the report, or its PDF, for publication."""
    description = "The report as a PDF" if source.suffix == ".pdf" else "A page of the report; it needs no network"
    return PackedFile(path, source.read_bytes(), source.stem, description)
