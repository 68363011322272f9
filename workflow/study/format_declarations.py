"""The formats: what a trace of each is made of, and where the code for it is, if there is any.

The declaration of a format is scripts/ttf/formats/<name>.yaml, or <name>/format.yaml beside its code. Its keys are
explained in workflow/schemas/format.schema.yaml.
"""

import textwrap
from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "scripts" / "ttf" / "formats"
# libyaml takes a seventh of the time.
LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
# Turns the raw tables of a format without code into jobs.
ENGINE = "ttf.formats.column_mapping"
# What the registry may say of how a trace is read and what its columns mean.
OF_READING = ("mapping", "times", "outcomes", "unique_ids", "delimiter", "quoted", "blank")


def declarations(folder: Path = FOLDER) -> dict[str, Path]:
    """Format -> the file of its declaration, by name."""
    found = {path.stem: path for path in folder.glob("*.yaml")}
    found |= {path.parent.name: path for path in folder.glob("*/format.yaml")}
    return dict(sorted(found.items()))


def load_formats(folder: Path = FOLDER) -> dict[str, dict]:
    """Format -> its declaration, with the names of modules in full: `code`, and `reader` where there is one.

    A test keeps them to their schema.
    """
    formats = {}
    for name, file in declarations(folder).items():
        about = yaml.load(file.read_bytes(), LOADER)
        modules = {key: f"ttf.formats.{name}.{about[key]}" for key in ("code", "reader") if key in about}
        formats[name] = about | {"code": ENGINE} | modules
    return formats


def schema_text(file: Path) -> str:
    """The schema of raw tables with its comments: out of the declaration of a format, or of a file of its own."""
    text = file.read_text(encoding="utf-8-sig")
    _, in_declaration, schema = text.partition("\nschema:\n")
    return textwrap.dedent(schema) if in_declaration else text


def meaning_of(entry: dict, format: dict) -> dict:
    """What jobs are derived by, beside the raw tables: the words and columns of the registry, else of the format."""
    return {key: format[key] for key in ("mapping", "outcomes") if key in format} | {
        key: entry[key] for key in OF_READING if key in entry
    }
