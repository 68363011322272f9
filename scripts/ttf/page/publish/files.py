"""The files that are published, and what each of them is; charts also as PNG, for slides and documents."""

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ttf.engine.contract import Column, Table
from ttf.engine.storage.tables import read_as_written
from ttf.engine.words import plural
from ttf.page.publish.pseudonyms import neutral

MEDIA_TYPES = {
    ".bib": "application/x-bibtex",
    ".cff": "application/yaml",
    ".css": "text/css",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".qmd": "text/markdown",
    ".sh": "application/x-sh",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_HEAD = b"\x89PNG\r\n\x1a\n"
_ONCE = {
    "config.yaml": "The configuration that the study was run with",
    "manifest.json": "Which rule, script, parameters and inputs made each file, with SHA-256",
    "sbom.cdx.json": "The packages of the environment, with versions and SHA-256: a bill of materials, CycloneDX",
    "metrics.json": "Every number of the text of the report: value, unit, n, source",
    "brief.json": "What the first screen says, what it cannot say and what to do",
}


@dataclass(frozen=True)
class Published:
    """A file: its place in what is published, its content, what it is called and what it is; of a table its columns."""

    path: str
    content: bytes
    name: str
    what: str
    columns: Mapping[str, Column] = field(default_factory=dict)

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES.get(Path(self.path).suffix, "text/plain")

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def product_of(path: Path, own: Path) -> Path:
    """The product that a file is published in place of: itself, or what has its place without pseudonyms.

    own: the folder of the study, results/studies/<name>.
    """
    hidden = own / "published"
    return own.parents[1] / path.relative_to(hidden) if path.is_relative_to(hidden) else path


def place_of(path: Path, own: Path) -> str:
    """Where a product lies in what is published: below the folder of its trace, or of the study `own`."""
    path = product_of(path, own)
    return path.relative_to(own if path.is_relative_to(own) else own.parents[1]).as_posix()


def content_of(source: Path, table: Table | None) -> bytes:
    """The bytes of a product as they are published: a table so that a spreadsheet reckons with no text of it."""
    content = source.read_bytes()
    if table is None or source.suffix != ".csv":
        return content
    frame, table = read_as_written(source, table)
    safe = neutral(frame, table)
    return content if safe.equals(frame) else safe.write_csv().encode()


def table_at(path: str, tables: Mapping[str, Table]) -> Table | None:
    """The contract of what is published at a path, below any folder. tables: path of a product -> contract."""
    parts = Path(path).parts
    places = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((tables[place] for place in places if place in tables), None)


def words_of_charts(indexes: Iterable[Path]) -> dict[str, dict]:
    """Folder/name of each chart -> its title, caption and text alternative, from the indexes of the charts."""
    return {
        f"{index.parent}/{name}": about
        for index in indexes
        for name, about in json.loads(index.read_text(encoding="utf-8")).items()
    }


def published(source: Path, path: str, charts: Mapping[str, Mapping], tables: Mapping[str, Table]) -> Published:
    """The file at `source`, to lie at `path`. A chart is called by its title, a table described by its contract.

    tables: path under the folder of the study or of a trace -> contract.
    """
    table = table_at(path, tables)
    content = content_of(source, table)
    name = Path(path).name
    stem = name.split(".")[0]
    about = charts.get(f"{source.parent}/{stem}")
    if about and not about["empty"]:
        return Published(path, content, about["title"], about["caption"])
    if about:
        return Published(path, content, stem.replace("_", " "), f"Nothing to draw: {about['empty']}.")
    if table:
        frame, table = read_as_written(source, table)
        what = f"{table.about} {plural(frame.height, 'row')} of {', '.join(frame.columns)}"
        return Published(path, content, stem.replace("_", " "), what, table.columns)
    return Published(path, content, stem.replace("_", " "), _ONCE.get(name, ""))


def page_of_report(source: Path, path: str) -> Published:
    """The same of a page of the report, or of what it is on paper."""
    what = "The report on paper" if source.suffix == ".pdf" else "A page of the report, which needs no network"
    return Published(path, source.read_bytes(), source.stem, what)


def png_of(svg: str) -> bytes:
    """The picture at twice its size in pixels; nothing in it may load anything (see ttf.display.charts.saving)."""
    import vl_convert

    return smaller(vl_convert.svg_to_png(svg, scale=2))


def smaller(png: bytes) -> bytes:
    """The same picture in about a third of the bytes: the converter is quick and compresses little."""
    parts = list(_chunks(png))
    pixels = zlib.compress(zlib.decompress(b"".join(data for name, data in parts if name == b"IDAT")), 9)
    first = next(i for i, (name, _) in enumerate(parts) if name == b"IDAT")
    kept = [part for part in parts if part[0] != b"IDAT"]
    return _HEAD + b"".join(_chunk(*part) for part in [*kept[:first], (b"IDAT", pixels), *kept[first:]])


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_HEAD)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
