"""The configuration: its files merged, checked, and completed by the defaults.

Nothing here imports Snakemake. The Snakefile does

    resolved = resolve(layers_of(workflow), load_yaml("config/traces.yaml"), tables)

and shows the text of a ConfigError to the user instead of a traceback.
"""

import copy
import functools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from study.documents import MOST_PROBLEMS, Problem, child, dotted, load_schema, mean, schema_problems, some
from study.mapping import MAPPED, mapping_problems, window_problems, zone_problems
from study.messages import ConfigError, show
from study.module import OF_MODULE, in_module
from study.named_files import file_problem, folder_problem
from study.yaml_files import Document, KeyPath, at, load_yaml, parse_yaml

DEFAULTS = Path(__file__).resolve().parents[2] / "config" / "config.yaml"
TRACES_FILE = "config/traces.yaml"
OVERRIDES = "--config"

Layer = tuple[str, dict]


# Layers -----------------------------------------------------------------------------------------------


def layers_of(workflow: Any) -> list[Layer]:
    """The layers of a Snakemake workflow's configuration, lowest precedence first, for `resolve`.

    They are the files of `configfile:`, those of --configfile in the order typed, and the --config overrides,
    as Snakemake merges them. The files are read again: Snakemake's own `config` no longer says which value
    came from where, and it lets a repeated key pass. Files below the working directory are named from there.
    Of a module they are our defaults and its `config:`.
    """
    settings = getattr(workflow, "config_settings", None)
    cwd = Path(getattr(workflow, "workdir_init", None) or Path.cwd())
    typed = list(getattr(settings, "configfiles", None) or [])
    # Snakemake appends the files of `configfile:` to the ones typed, though the typed ones win.
    own = [file for file in getattr(workflow, "configfiles", None) or [] if file not in typed]
    files = [(label, read_layer(file, label)) for file in [*own, *typed] for label in [_label(file, cwd)]]
    overrides = _overrides(settings)
    layers = [*files, *([(OVERRIDES, overrides)] if overrides else [])]
    if not in_module(workflow):
        return layers
    # What was typed is the other workflow's. Where it hands it on as it is, that is read as above: messages name the
    # files, and numbers are numbers.
    as_snakemake_has_it = [*(content for _, content in files), getattr(settings, "config", None) or {}]
    handed_on = functools.reduce(_merge, as_snakemake_has_it, {}) == workflow.config
    defaults = (_label(DEFAULTS, cwd), read_layer(DEFAULTS))
    return [defaults, *(layers if handed_on else [(OF_MODULE, dict(workflow.config))])]


def read_layer(file: str | Path, label: str | None = None, for_snakemake: bool = False) -> Document:
    """A file of configuration, `label` in messages; for_snakemake: before Snakemake reads it.

    Raises ConfigError where it cannot be read, or asks for code to be run: Snakemake would.
    """
    content = load_yaml(file, label, for_snakemake)
    if problem := next((key for key in content if key.startswith("__")), None):
        where = f"{label or file}: {at(content.place((problem,)))}{show(problem)}"
        raise ConfigError(f"{where}: a configuration is no template; write the values themselves, and leave this out.")
    return content


def _label(file: str | Path, cwd: Path) -> str:
    """The name of a configuration file in messages."""
    # workflow.source_path() gives a copy in a cache, which carries the path of the original, as in
    # workflow/../config/config.yaml.
    original = getattr(file, "flags", {}).get("sourcecache_entry")
    path = Path(os.path.normpath(original) if original else file)
    return str(path.relative_to(cwd) if path.is_relative_to(cwd) else path)


def _overrides(settings: Any) -> dict:
    """What --config says. Snakemake reads numbers inside brackets as text, so the words are read again."""
    words = getattr(settings, "config_args", None)
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        return dict(getattr(settings, "config", None) or {})
    return read_words(words)


def read_words(words: Iterable[str]) -> dict:
    """What --config says, by its words. Raises ConfigError."""
    merged: dict = {}
    for word in words:
        key, found, text = word.partition("=")
        if not found or not re.match(r"[a-zA-Z_][\w-]*\w$", key):  # Snakemake's rule
            raise ConfigError(f"{OVERRIDES}: {show(word)}: expected a key and its value, for example study=[sample].")
        # The outer quotes go, as in Snakemake.
        merged = _merge(merged, {key: parse_yaml(text.strip("'\""), f"{OVERRIDES}: {key}")})
    return merged


# Resolving --------------------------------------------------------------------------------------------


def _with_defaults(schema: dict, values: dict) -> dict:
    """A schema with these values of its keys as their defaults; a key that it has not is refused with the others."""
    for key in values.keys() & schema.get("properties", {}).keys():
        part, value = schema["properties"][key], values[key]
        part["default"] = value
        if isinstance(value, dict) and value:
            _with_defaults(part, value)
    return schema


SCHEMA = _with_defaults(load_schema("config.schema.yaml"), load_yaml(DEFAULTS, "config/config.yaml"))


def entry_of(schema: dict) -> dict:
    """The schema of a trace in the registry, of that of the whole configuration."""
    return next(iter(schema["properties"]["registry"]["patternProperties"].values()))


def resolve(layers: list[Layer], traces: dict, tables: Mapping[str, Iterable[str]] | None = None) -> dict:
    """The configuration that results from `layers`, (label, content) with the lowest precedence first.

    `traces` is the content of config/traces.yaml, below all layers. `tables` gives the table names of each format;
    without it, the names of formats and of tables are not checked. The result has every key, in the schema's order, and
    in its registry the traces of the study only, in the study's order. Raises ConfigError with all problems: of what
    breaks the schema, not also what it contradicts.
    """
    stack = stacked(layers, traces)
    merged: dict = {}
    for _, content in stack:
        merged = _merge(merged, content)
    schema = copy.deepcopy(SCHEMA)
    if tables is not None:
        entry_of(schema)["properties"]["format"]["enum"] = sorted(tables)
    problems = some(schema_problems(merged, schema))
    if len(problems) < MOST_PROBLEMS:  # else not all that is broken is known
        broken = {problem.path[:end] for problem in problems for end in (1, 2)}
        problems += some(_contradictions(merged, broken, tables or {}))
    if problems:
        raise ConfigError(in_files(problems, stack))
    resolved = _complete(SCHEMA, merged)
    resolved["registry"] = {name: resolved["registry"][name] for name in resolved["study"]}
    resolved["name"] = resolved["name"] or (resolved["study"][0] if len(resolved["study"]) == 1 else "study")
    return resolved


def dump(resolved: dict) -> str:
    """The resolved configuration as YAML text, the same bytes for all that give the same results."""
    resolved = {key: value for key, value in resolved.items() if key != "scatter"}
    return yaml.dump(resolved, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Writes a value out again where it stands twice, instead of an anchor and an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _plain(value: Any) -> Any:
    """A copy made of dicts with text keys, of lists, and of integers that fit the tables' 64 bits."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # Python refuses to print an integer of thousands of digits, even to say that it is wrong.
    return float("inf") if isinstance(value, int) and abs(value) >= 2**63 else value


def _merge(low: Any, high: Any) -> Any:
    """`high` over `low`: mappings key by key, anything else replaces, as in Snakemake.

    One difference: an empty mapping takes the place of a value that is none, where Snakemake keeps the value.
    """
    if not isinstance(high, Mapping):
        return high
    merged = dict(low) if isinstance(low, Mapping) else {}
    for key, value in high.items():
        merged[key] = _merge(merged.get(key), value)
    return merged


def _complete(schema: dict, value: Any) -> Any:
    """`value` with the defaults of the schema, its keys in the schema's order (names in the alphabet's)."""
    if not isinstance(value, dict):
        return value
    known = schema.get("properties", {})
    full = {
        key: _complete(part, value[key] if key in value else copy.deepcopy(part["default"]))
        for key, part in known.items()
        if key in value or "default" in part
    }
    for key in sorted(value.keys() - known.keys()):
        full[key] = _complete(child(schema, key), value[key])
    return full


# Problems ---------------------------------------------------------------------------------------------


def _contradictions(
    merged: dict, broken: Collection[KeyPath], tables: Mapping[str, Iterable[str]]
) -> Iterator[Problem]:
    """What the schema cannot say, of the parts that keep to it: `broken` are the keys and traces that do not."""
    registry = merged.get("registry", {})
    if not isinstance(registry, dict):
        return
    for name in merged.get("study", []) if ("study",) not in broken else ():
        if name not in registry:
            names = ", ".join(sorted(registry))
            text = f"{show(name)} is not in the registry{mean(name, registry)} In the registry: {names}."
            yield Problem(("study",), text)
    for name, entry in registry.items():
        above = ("registry", name)
        if above not in broken:
            for path, text, at in _in_entry(entry, list(tables.get(entry["format"], ()))):
                yield Problem((*above, *path), text, at and [(*above, *key) for key in at])
    features = merged.get("risk", {}).get("features", {}) if ("risk",) not in broken else {}
    for name in features if tables else ():
        if name not in registry and name not in tables:
            text = f"{show(name)} is neither a trace nor a format{mean(name, [*registry, *tables])} "
            text += f"In the registry: {', '.join(sorted(registry))}. Formats: {', '.join(sorted(tables))}."
            yield Problem(("risk", "features", name), text)
    for key, looked_at in (("analyses", folder_problem), ("claims", file_problem)):
        for number, path in enumerate(merged.get(key, [])) if (key,) not in broken else ():
            if text := looked_at(path):
                yield Problem((key, number), f"{path}: {text}")


def _in_entry(entry: dict, tables: list[str]) -> Iterator[Problem]:
    """The same of a trace in the registry; paths are within its entry. `tables` are those of its format, if known."""
    if "folder" in entry and entry.get("embedded"):
        text = "is an embedded sample, and has a folder once all files are merged. "
        yield Problem((), text + "Give your own data a name of its own.", at=[("folder",), ("embedded",)])
    elif "folder" not in entry and not entry.get("embedded"):
        yield Problem((), "has no folder; say where its raw tables are, for example folder: path/to/the/csv/files.")
    for key in ("files", "download") if tables else ():
        for table in [table for table in entry.get(key, {}) if table not in tables]:
            text = f"the format {entry['format']} has no such table{mean(table, tables)} "
            yield Problem((key, table), text + f"Allowed here: {', '.join(tables)}.")
    checks = [window_problems(entry)]
    checks += [mapping_problems(entry)] if entry["format"] in MAPPED else []
    checks += [zone_problems(entry)] if entry["format"] in (*MAPPED, "sacct") else []
    yield from (Problem(path, text) for found in checks for path, text in found)


def stacked(layers: list[Layer], traces: dict) -> list[Layer]:
    """The layers with text keys, and below them the registry: `traces` is the content of config/traces.yaml."""
    stack = [(TRACES_FILE, {"registry": traces}, traces), *((label, content, content) for label, content in layers)]
    return [(label, Document(_plain(content), getattr(read, "tree", None))) for label, content, read in stack]


def in_files(problems: list[Problem], stack: list[Layer]) -> str:
    """One line a problem, the files of the `stacked` layers in the order of their precedence, each from its top."""
    lines = []
    for problem in problems:
        number = max(_last_layer(path, stack) for path in problem.at or [problem.path])
        label, content = stack[number]
        # In the registry's own file the traces stand at the top.
        path = problem.path[1:] if label == TRACES_FILE and len(problem.path) > 1 else problem.path
        place = content.place(path) if _depth(problem.path, content) else None
        lines.append(((number, place or (0, 0)), f"{label}: {at(place)}{dotted(path)}: {problem.text}"))
    return "\n".join(line for _, line in sorted(lines, key=lambda pair: pair[0]))


def _last_layer(path: KeyPath, stack: list[Layer]) -> int:
    """The last layer that has `path`, or as much of it as any layer has (a key may be missing)."""
    return max(range(len(stack)), key=lambda number: (_depth(path, stack[number][1]), number))


def _depth(path: KeyPath, content: Any) -> int:
    """How much of `path` there is."""
    there = path and isinstance(content, dict) and path[0] in content
    return 1 + _depth(path[1:], content[path[0]]) if there else 0
