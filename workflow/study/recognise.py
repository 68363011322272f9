"""Which format a folder of raw tables is in, so that a study of it runs without a configuration.

What decides are the headers of the files and their names, by the declarations of the formats. A table of any layout
(the format table) is known by the mappings of the registry's own traces.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from study.config import SCHEMA, TRACES_FILE
from study.documents import child
from study.entries import expected_file, files_of, listing
from study.first_lines import said
from study.fits import Fit, Folder, files_beside, fit_of, folder_of, shapes_of, share_of
from study.format_declarations import OF_READING, load_formats
from study.messages import ConfigError
from study.trace_files import archives_of, raw_tables
from study.yaml_files import load_yaml

TRACES = Path(__file__).resolve().parents[2] / TRACES_FILE
MOST_NEAREST = 3
# With fewer of its columns there, a format is no candidate.
LEAST_SHARE = 0.5
LONGEST_TRACE_NAME = 60
ANY_OTHER = (
    "A table of any other layout with a row per job is of the format table, with a mapping of its columns, one with a "
    "row per outage of the format outages: write it as config/README.md says, and run make report CONFIG=my.yaml."
)


@dataclass(frozen=True)
class Recognised:
    """A format that fits: the trace's name and its entry in the registry, and why, in a line or two of plain words."""

    format: str
    name: str
    entry: dict
    why: str


def recognise(data: Path) -> Recognised:
    """The format of the raw tables in a folder; of a file: of it and what belongs to it in its folder.

    The first lines of the files are read, no more, and nothing but plain files is opened. The entry names files where
    their names do not say what they are, and what lies beside the tables (health events, losses).
    Raises ConfigError, one message, for a folder that is not there or holds no file, and where no format fits it or
    more than one does: with those that come near and what they lack, or how to choose.
    """
    folder, formats, registry = folder_of(Path(data)), load_formats(), load_yaml(TRACES, TRACES_FILE)
    fits = [fit_of(folder, shape) for shape in shapes_of(formats, registry)]
    right = [fit for fit in fits if fit.is_right]
    # Node events beside jobs are a part of these, and no trace of their own.
    right = [fit for fit in right if not any(_taken(fit) < _taken(other) for other in right)]
    if not right:
        raise ConfigError("\n".join([*_unknown(folder, fits), *_published(folder, registry), ANY_OTHER]))
    if len(right) > 1:
        raise ConfigError(_ambiguous(folder, right))
    entry = _entry(folder, right[0])
    name = next(name for name in _trace_names(folder.path, registry) if _is_free(name, entry, registry, formats))
    return Recognised(entry["format"], name, entry, "\n".join(_why(right[0])))


def _taken(fit: Fit) -> set[str]:
    return {file for files in fit.files.values() for file in files}


def configuration_text(recognised: Recognised) -> str:
    """The YAML of a study of what was recognised, with comments, for a person to keep and edit."""
    comments = recognised.why.splitlines()
    if "mapping" in recognised.entry:
        comments.append(
            "Look through the mapping, units, time zone and outcomes: only the columns' names were compared."
        )
    comments.append("Every key, and others such as title, source, note and windows, is explained in config/README.md.")
    document = {"study": [recognised.name], "registry": {recognised.name: recognised.entry}}
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    return "".join(f"# {line}\n" for line in comments) + text


# The entry ----------------------------------------------------------------------------------------------


def _entry(folder: Folder, fit: Fit) -> dict:
    """The entry in the registry by which the folder is read as it fits."""
    shape, path = fit.shape, str(folder.path)
    beside = files_beside(shape, folder.files)
    tables = shape.declared["tables"]
    given = {tables[table]["beside"]: files for table, files in fit.files.items() if "beside" in tables[table]}
    apart = {*beside.values(), *(file for files in given.values() for file in files)}
    present = [file for file in folder.files if file not in apart]
    own = {table: files for table, files in fit.files.items() if "beside" not in tables[table]}
    named = {table: found[0] for table, found in own.items() if files_of(tables[table], present) != found}
    return (
        {"format": shape.format, "folder": path}
        | ({"files": named} if named else {})
        | {key: f"{path}/{file}" for key, file in beside.items()}
        | {key: [f"{path}/{file}" for file in files] for key, files in given.items()}
        | dict(shape.about)
    )


def _trace_names(folder: Path, registry: dict) -> Iterator[str]:
    """Names for a trace in the folder, the best first, all of them legal; `a-b` is `a_b` of the registry."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", folder.resolve().name)[:LONGEST_TRACE_NAME].strip("_-") or "data"
    same = [known for known in registry if known.replace("-", "_") == name.replace("-", "_")]
    yield from (word for word in (*same, name) if child(SCHEMA["properties"]["registry"], word) is not None)
    yield f"my_{name}"
    yield from (f"my_{name}_{number}" for number in itertools.count(2))


def _is_free(name: str, entry: dict, registry: dict, formats: dict) -> bool:
    """Whether the registry has no trace of the name, or one that is read so too and then says more of it."""
    shipped = registry.get(name)
    if not shipped:
        return True
    if "embedded" in shipped or shipped["format"] != entry["format"]:
        return False
    try:
        is_same = raw_tables(name, shipped | entry, formats) == raw_tables(name, entry, formats)
    except ConfigError:
        return False
    return is_same and all(shipped.get(key) == entry.get(key) for key in OF_READING)


# Words --------------------------------------------------------------------------------------------------


def _why(fit: Fit) -> list[str]:
    """In words what the format was known by, and which of its other tables are there."""
    shape = fit.shape
    table = next(table for table in shape.core if table in fit.files)
    layout, file = shape.layouts[table], fit.files[table][0]
    names = [column.name for column in layout.columns if not column.optional]
    which = f"{', '.join(names[:3])}, ..." if len(names) > 3 else ", ".join(names)
    if layout.header:
        text = f"has the {'fields' if layout.json else 'columns'} {which} of the table {table}"
    else:
        text = f"has the name and the {len(layout.columns)} columns of the table {table}"
    files = len(fit.files[table])
    lines = [f"{shape.label}: {said(file)}{f', as all {files} files,' if files > 1 else ''} {text}."]
    there, absent = ([other for other in shape.layouts if (other in fit.files) is on] for on in (True, False))
    if len(shape.layouts) > 1:
        tables = f"Tables: {', '.join(there)}"
        lines.append(f"{tables}; not there, and not needed: {', '.join(absent)}." if absent else f"{tables}.")
    return lines


def _unknown(folder: Folder, fits: list[Fit]) -> list[str]:
    """What to say where nothing fits: the formats that come nearest, and what is missing of each."""
    about = f"DATA={said(str(folder.path / (folder.only or '')))}"
    what = said(folder.only) if folder.only else f"the folder ({listing([said(file) for file in folder.files])})"
    shares = [(share_of(folder, fit), fit) for fit in fits]
    near = [(share, fit) for share, fit in shares if share >= LEAST_SHARE or fit.files or fit.lacks]
    near = [fit for _, fit in sorted(near, key=lambda pair: -pair[0])[:MOST_NEAREST]]
    if near:
        lines = [f"{about}: {what} is in none of the formats. The nearest, and what each of them lacks:"]
        lines += [f"  {fit.shape.label}: {' '.join(_lacking(folder, fit))}" for fit in near]
    else:
        lines = [f"{about}: {what} is in none of the formats, nor near any. The formats, and what each of them needs:"]
        lines += [f"  {fit.shape.label}: {_needed(fit)}" for fit in fits]
    return lines


def _published(folder: Folder, registry: dict) -> Iterator[str]:
    """A word on archives that the registry knows: they hold tables of traces, and need not be unpacked."""
    for trace, entry in registry.items():
        for file in sorted({*archives_of(entry).values()} & {*folder.looked_at}):
            yield (
                f"{said(file)} is the name of the archive of the trace {trace}: unpack it, or run make report "
                f"CONFIG=my.yaml with study: [{trace}] and registry: {{{trace}: {{folder: {said(str(folder.path))}}}}}."
            )


def _lacking(folder: Folder, fit: Fit) -> Iterator[str]:
    """What a fit lacks, in words; of a missing table with the file that is nearest to it."""
    for table in fit.missing:
        spec, layout = fit.shape.declared["tables"][table], fit.shape.layouts[table]
        share, file = folder.nearest(layout)
        is_near = share >= LEAST_SHARE and not folder.known(file, layout)
        nearest = f"; nearest to it is {folder.problem(file, layout)}" if is_near else "."
        yield f"the table {table} is missing, expected {expected_file(spec)}{nearest}"
    yield from fit.lacks


def _needed(fit: Fit) -> str:
    tables = fit.shape.declared["tables"]
    either = " and " if fit.shape.needs_all else " or "
    return either.join(expected_file(tables[table]) for table in fit.shape.core)


def _ambiguous(folder: Folder, fits: list[Fit]) -> str:
    """What to say where several formats fit, and how to choose."""
    lines = [f"DATA={said(str(folder.path))}: more than one format fits:"]
    lines += [f"  {_why(fit)[0]}" for fit in fits]
    lines.append(
        "Name a file of the one you mean, as in DATA=folder/file, put the others elsewhere, or say it in a "
        f"configuration: make report CONFIG=my.yaml with registry: {{mine: {{format: {fits[0].shape.format}, "
        f"folder: {said(str(folder.path))}}}}}."
    )
    return "\n".join(lines)
