"""The declarations of formats: the content of a trace, and the code of the format if it has any.

A format is declared in scripts/ttf/formats/<name>.yaml, or in <name>/format.yaml next to its code.
workflow/schemas/format.schema.yaml explains the keys.
"""

import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ttf.engine.checkout import CHECKOUT, PACKAGE
from ttf.study.configuration.yaml_files import FAST_LOADER, load_yaml

FOLDER = PACKAGE / "formats"
# The recipes: mappings of the tables that other programs export.
RECIPES = "config/mappings"
# The module that derives jobs for a format without code.
MAPPING_MODULE = "ttf.formats.column_mapping"
# Keys of the registry for reading a trace and for the meaning of its columns.
READING_KEYS: tuple[str, ...] = ("mapping", "times", "outcomes", "unique_ids", "snapshots", "numbers", "delimiter")
READING_KEYS += ("quoted", "blank", "records")


def find_declarations(folder: Path = FOLDER) -> dict[str, Path]:
    file_by_format = {path.stem: path for path in folder.glob("*.yaml")}
    file_by_format |= {path.parent.name: path for path in folder.glob("*/format.yaml")}
    return dict(sorted(file_by_format.items()))


def load_formats(folder: Path = FOLDER) -> dict[str, dict]:
    """Map each format to its declaration, with full module names in `code` and `reader`."""
    formats = {}
    for name, file in find_declarations(folder).items():
        declaration = _parse_declaration(file.read_bytes())
        modules = {key: f"ttf.formats.{name}.{declaration[key]}" for key in ("code", "reader") if key in declaration}
        formats[name] = declaration | {"code": MAPPING_MODULE} | modules
    return formats


@cache
def _parse_declaration(content: bytes) -> Any:
    return yaml.load(content, FAST_LOADER)


@cache
def load_recipes() -> list[tuple[str, dict]]:
    """Return (file, entry in the registry) of each recipe."""
    file_by_label = {f"{RECIPES}/{file.name}": file for file in sorted((CHECKOUT / RECIPES).glob("*.yaml"))}
    return [
        (label, entry) for label, file in file_by_label.items() for entry in load_yaml(file, label)["registry"].values()
    ]


def read_schema_text(file: Path) -> str:
    """Return the schema of raw tables with its comments, from a format's declaration or from a file of its own."""
    text = file.read_text(encoding="utf-8-sig")
    _, in_declaration, schema = text.partition("\nschema:\n")
    return textwrap.dedent(schema) if in_declaration else text


def select_meaning(entry: dict, format: dict) -> dict:
    """Return the words and columns that define jobs: from the registry entry, else from the format."""
    meaning = {key: format[key] for key in ("mapping", "outcomes") if key in format} | select_reading_options(entry)
    return meaning | ({"outcomes": merge_outcomes(entry, format)} if "outcomes" in meaning else {})


def select_reading_options(entry: dict) -> dict:
    """Return the keys of a registry entry for reading a trace and for the meaning of its columns."""
    return {key: entry[key] for key in READING_KEYS if key in entry}


def merge_outcomes(entry: dict, format: dict) -> dict[str, list[str]]:
    """Return outcome -> status words: those of the format, except for words that the entry gives another outcome."""
    changes, outcomes = entry.get("outcomes", {}), format.get("outcomes", {})
    changed_words = {word for words in changes.values() for word in words}
    kept = {name: [word for word in words if word not in changed_words] for name, words in outcomes.items()}
    return {name: [*kept.get(name, []), *changes.get(name, [])] for name in dict.fromkeys([*kept, *changes])}
