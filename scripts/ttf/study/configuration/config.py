"""The configuration: files merged, checked and completed by defaults.

Nothing here imports Snakemake. The Snakefile calls

    resolved = resolve(read_layers(workflow), load_yaml("config/traces.yaml"), tables)

and shows the text of a ConfigError instead of a traceback.
"""

import copy
import functools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from ttf.engine.checkout import CHECKOUT
from ttf.engine.storage.plain_files import make_relative
from ttf.study.configuration.documents import (
    MOST_PROBLEMS,
    Problem,
    find_schema_problems,
    format_key_path,
    get_child_schema,
    load_schema,
    suggest_match,
    take_first,
)
from ttf.study.configuration.mapping import (
    MAPPED_FORMATS,
    describe_unknown_zone,
    find_mapping_problems,
    find_window_problems,
    find_zone_problems,
)
from ttf.study.configuration.messages import ConfigError, show
from ttf.study.configuration.named_files import file_problem, folder_problem
from ttf.study.configuration.yaml_files import Document, KeyPath, format_position, load_yaml, parse_yaml
from ttf.study.running.module import MODULE_LABEL, is_used_as_module

DEFAULTS = CHECKOUT / "config" / "config.yaml"
TRACES_FILE = "config/traces.yaml"
OVERRIDES = "--config"

# The label of a file, or of typed overrides, and its content. A stacked layer knows the positions of its keys.
Layer: TypeAlias = tuple[str, Mapping[str, Any]]
StackedLayer: TypeAlias = tuple[str, Document]


# Layers -----------------------------------------------------------------------------------------------


def read_layers(workflow: Any) -> list[Layer]:
    """Return the layers of a Snakemake workflow's configuration for `resolve`, lowest precedence first.

    As in Snakemake, these are the files of `configfile:`, the files of --configfile in the order typed, and --config.
    The files are read again, because Snakemake's `config` does not say which value came from which file, and Snakemake
    accepts a repeated key. Labels are relative to the working directory. As a module, the layers are our defaults and
    the module's `config:`.
    """
    settings, cwd = workflow.config_settings, Path(workflow.workdir_init)
    # Snakemake appends the files of `configfile:` to the ones typed, though the typed ones win.
    workflow_files = [file for file in workflow.configfiles if file not in settings.configfiles]
    paths = [*workflow_files, *settings.configfiles]
    files: list[Layer] = [(label := _format_label(path, cwd), read_layer(path, label)) for path in paths]
    overrides = parse_overrides(settings.config_args)
    layers = [*files, (OVERRIDES, overrides)] if overrides else files
    if not is_used_as_module(workflow):
        return layers
    # The files belong to the other workflow. If it passes their content on unchanged, they are read as above, so
    # that messages name them and numbers stay numbers.
    snakemake_layers = [*(content for _, content in files), settings.config]
    is_unchanged = functools.reduce(_merge, snakemake_layers, {}) == workflow.config
    defaults = (_format_label(DEFAULTS, cwd), read_layer(DEFAULTS))
    return [defaults, *(layers if is_unchanged else [(MODULE_LABEL, dict(workflow.config))])]


def read_layer(file: str | Path, label: str | None = None, for_snakemake: bool = False) -> Document:
    """Return a configuration file; for_snakemake: before Snakemake reads it.

    Raises ConfigError if the file cannot be read, or if it asks Snakemake to run code. label: its name in messages.
    """
    content = load_yaml(file, label, for_snakemake)
    if template_key := next((key for key in content if key.startswith("__")), None):
        position = f"{label or file}: {format_position(content.find_position((template_key,)))}{show(template_key)}"
        raise ConfigError(f"{position}: templates are not supported; write the values themselves, and remove this key.")
    return content


def _format_label(file: str | Path, cwd: Path) -> str:
    # workflow.source_path() returns a cached copy that keeps the path of the original.
    cache_entry = getattr(file, "flags", {}).get("sourcecache_entry")
    return make_relative(os.path.normpath(cache_entry) if cache_entry else file, cwd)


def parse_overrides(words: Iterable[str]) -> dict:
    """Return the mapping that the words of --config describe. Raises ConfigError."""
    merged: dict = {}
    for word in words:
        key, separator, text = word.partition("=")
        if not separator or not re.match(r"[a-zA-Z_][\w-]*\w$", key):  # Snakemake's rule
            raise ConfigError(f"{OVERRIDES}: {show(word)}: expected a key and its value, for example study=[sample].")
        # Outer quotes are removed, as in Snakemake.
        merged = _merge(merged, {key: parse_yaml(text.strip("'\""), f"{OVERRIDES}: {key}")})
    return merged


# Resolving --------------------------------------------------------------------------------------------


def _set_defaults(schema: dict, values: dict) -> dict:
    for key in values.keys() & schema.get("properties", {}).keys():
        key_schema, value = schema["properties"][key], values[key]
        key_schema["default"] = value
        if isinstance(value, dict) and value:
            _set_defaults(key_schema, value)
    return schema


SCHEMA = _set_defaults(load_schema("config.schema.yaml"), load_yaml(DEFAULTS, "config/config.yaml"))


def get_trace_schema(schema: dict) -> dict:
    return next(iter(schema["properties"]["registry"]["patternProperties"].values()))


def resolve(layers: Sequence[Layer], traces: dict, tables: Mapping[str, Iterable[str]] | None = None) -> dict:
    """Return the configuration that results from `layers`, (label, content) with the lowest precedence first.

    traces: the content of config/traces.yaml, below all layers. tables: format -> table names; without it, names of
    formats and tables are not checked. The result has every key in the schema's order; its registry has only the traces
    of the study, in the study's order. Raises ConfigError with all problems; values that break the schema are not
    checked for contradictions.
    """
    stack = stack_layers(layers, traces)
    merged: dict = functools.reduce(_merge, (content for _, content in stack), {})
    schema = copy.deepcopy(SCHEMA)
    if tables is not None:
        get_trace_schema(schema)["properties"]["format"]["enum"] = sorted(tables)
    problems = take_first(find_schema_problems(merged, schema))
    if len(problems) < MOST_PROBLEMS:  # else the list of broken keys is incomplete
        broken_paths = {problem.path[:length] for problem in problems for length in (1, 2)}
        problems += take_first(_find_contradictions(merged, broken_paths, tables or {}))
    if problems:
        raise ConfigError(format_problems(problems, stack))
    resolved = _fill_defaults(SCHEMA, merged)
    resolved["registry"] = {name: resolved["registry"][name] for name in resolved["study"]}
    resolved["name"] = resolved["name"] or (resolved["study"][0] if len(resolved["study"]) == 1 else "study")
    return resolved


def dump(resolved: dict) -> str:
    """Return the resolved configuration as YAML; settings that do not change results are left out."""
    resolved = {key: value for key, value in resolved.items() if key != "scatter"}
    return yaml.dump(resolved, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Repeats a value that occurs twice instead of writing an anchor and an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _to_plain(value: Any) -> Any:
    """Return a value with text keys and plain lists; a whole number beyond 64 bits becomes inf."""
    if isinstance(value, Mapping):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    # Python refuses to print an integer of thousands of digits, even in an error message.
    return float("inf") if isinstance(value, int) and abs(value) >= 2**63 else value


def _merge(low: Any, high: Any) -> Any:
    """Return `high` merged over `low`: mappings key by key, other values replaced, as in Snakemake.

    One difference: an empty mapping replaces a value that is not a mapping; Snakemake keeps that value.
    """
    if not isinstance(high, Mapping):
        return high
    merged = dict(low) if isinstance(low, Mapping) else {}
    for key, value in high.items():
        merged[key] = _merge(merged.get(key), value)
    return merged


def _fill_defaults(schema: dict, value: Any) -> Any:
    """Return `value` with the defaults of the schema; keys in the schema's order, free names sorted."""
    if not isinstance(value, dict):
        return value
    key_schemas = schema.get("properties", {})
    full = {
        key: _fill_defaults(key_schema, value[key] if key in value else copy.deepcopy(key_schema["default"]))
        for key, key_schema in key_schemas.items()
        if key in value or "default" in key_schema
    }
    for key in sorted(value.keys() - key_schemas.keys()):
        full[key] = _fill_defaults(get_child_schema(schema, key) or {}, value[key])
    return full


# Problems ---------------------------------------------------------------------------------------------


def _find_contradictions(
    merged: dict, broken: Collection[KeyPath], tables: Mapping[str, Iterable[str]]
) -> Iterator[Problem]:
    """Yield the problems that a schema cannot express, outside the broken keys and traces."""
    registry = merged.get("registry", {})
    if not isinstance(registry, dict):
        return
    for name in merged.get("study", []) if ("study",) not in broken else ():
        if name not in registry:
            names = ", ".join(sorted(registry))
            text = f"{show(name)} is not in the registry{suggest_match(name, registry)} In the registry: {names}."
            yield Problem(("study",), text)
    for name, entry in registry.items():
        parent = ("registry", name)
        if parent not in broken:
            for path, text, keys in _find_entry_problems(entry, list(tables.get(entry["format"], ()))):
                yield Problem((*parent, *path), text, keys and [(*parent, *key) for key in keys])
    features = merged.get("risk", {}).get("features", {}) if ("risk",) not in broken else {}
    for name in features if tables else ():
        if name not in registry and name not in tables:
            text = f"{show(name)} is neither a trace nor a format{suggest_match(name, [*registry, *tables])} "
            text += f"In the registry: {', '.join(sorted(registry))}. Formats: {', '.join(sorted(tables))}."
            yield Problem(("risk", "features", name), text)
    for key, find_problem in (("analyses", folder_problem), ("claims", file_problem)):
        for number, path in enumerate(merged.get(key, [])) if (key,) not in broken else ():
            if text := find_problem(path):
                yield Problem((key, number), f"{path}: {text}")


def _find_entry_problems(entry: dict, tables: list[str]) -> Iterator[Problem]:
    """Yield the problems of a trace's entry that a schema cannot express; paths start in it. tables: of its format."""
    if "folder" in entry and entry.get("embedded"):
        text = "is an embedded sample, but the merged configuration gives it a folder. "
        yield Problem((), text + "Give your own data another name.", deciding_keys=[("folder",), ("embedded",)])
    elif "folder" not in entry and not entry.get("embedded"):
        yield Problem((), "has no folder; say where its raw tables are, for example folder: path/to/the/csv/files.")
    for key in ("files", "download") if tables else ():
        for table in [table for table in entry.get(key, {}) if table not in tables]:
            text = f"the format {entry['format']} has no such table{suggest_match(table, tables)} "
            yield Problem((key, table), text + f"Allowed here: {', '.join(tables)}.")
    for key in ("node_log_zone", "training_log_zone"):
        if text := describe_unknown_zone(entry.get(key)):
            yield Problem((key,), text)
    checks = [find_window_problems(entry)]
    checks += [find_mapping_problems(entry)] if entry["format"] in MAPPED_FORMATS else []
    checks += [find_zone_problems(entry)] if entry["format"] in (*MAPPED_FORMATS, "sacct") else []
    yield from (Problem(path, text) for problems in checks for path, text in problems)


def stack_layers(layers: Sequence[Layer], traces: Mapping[str, Any]) -> list[StackedLayer]:
    """Return the layers with text keys, above `traces`, the content of config/traces.yaml."""
    trace_layer = TRACES_FILE, Document(_to_plain({"registry": traces}), getattr(traces, "tree", None))
    return [trace_layer, *((label, Document(_to_plain(part), getattr(part, "tree", None))) for label, part in layers)]


def format_problems(problems: Iterable[Problem], stack: Sequence[StackedLayer]) -> str:
    """Return one line per problem, ordered by the precedence of the files and the position in each file."""
    lines = []
    for problem in problems:
        number = max(_find_deepest_layer(path, stack) for path in problem.deciding_keys or [problem.path])
        label, content = stack[number]
        # In config/traces.yaml the traces are top-level keys.
        path = problem.path[1:] if label == TRACES_FILE and len(problem.path) > 1 else problem.path
        position = content.find_position(path) if _count_present_keys(problem.path, content) else None
        line = f"{label}: {format_position(position)}{format_key_path(path)}: {problem.text}"
        lines.append((number, position or (0, 0), line))
    return "\n".join(line for *_, line in sorted(lines, key=lambda item: item[:2]))


def _find_deepest_layer(path: KeyPath, stack: Sequence[StackedLayer]) -> int:
    return max(range(len(stack)), key=lambda number: (_count_present_keys(path, stack[number][1]), number))


def _count_present_keys(path: KeyPath, content: Any) -> int:
    exists = path and isinstance(content, dict) and path[0] in content
    return 1 + _count_present_keys(path[1:], content[path[0]]) if exists else 0
