"""The configuration: read its files, merge them, and say in plain words what is wrong with them.

Nothing here imports Snakemake. The Snakefile does

    resolved = resolve(layers_of(workflow), load_yaml("config/traces.yaml"))

and shows the text of a ConfigError to the user instead of a traceback.
"""

import contextlib
import copy
import datetime
import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonschema import Draft202012Validator, validators

from study.formats import declarations
from study.mapping import mapping_problems, zone_problems
from study.window import window_problems

SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
TRACES_FILE = "config/traces.yaml"
OVERRIDES = "--config"
# Format -> what says how large a synthetic trace of it is.
SAMPLE_SIZES = {"pai2020": "tasks", "philly": "jobs", "sacct": "jobs"}

Layer = tuple[str, dict]
KeyPath = tuple[str | int, ...]


class ConfigError(Exception):
    """What is wrong with the configuration, one problem a line, for the user to read."""


# Reading ------------------------------------------------------------------------------------------------


def load_yaml(path: str | Path, label: str | None = None) -> dict:
    """The mapping in a YAML file. `label` names the file in messages, `path` if there is none."""
    label = str(path) if label is None else label
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{label}: there is no such file.") from None
    except OSError as error:
        raise ConfigError(f"{label}: the file cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{label}: line {line}: not UTF-8 text; save the file as UTF-8.") from None
    content = _parse(text, label)
    if not isinstance(content, dict):
        found = "the file is empty" if content is None else f"found {_found(content)}"
        raise ConfigError(f"{label}: {found}; expected keys with values, for example study: [sample].")
    return content


def _parse(text: str, label: str) -> Any:
    """The content of a YAML text. PyYAML by itself lets the last of two equal keys win, silently."""
    try:
        loader, node = _composed(text)
        if problems := list(_node_problems(node)):
            # A mapping that stands twice by an alias is looked at twice.
            raise ConfigError("\n".join(dict.fromkeys(f"{label}: {problem}" for problem in problems)))
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        # PyYAML's words are a parser's; the hint is for a person.
        hint = "indent with spaces, not tabs" if "'\\t'" in str(error.problem) else _YAML_HINT
        raise ConfigError(f"{label}: {where}not valid YAML ({one_line(error.problem)}); {hint}.") from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise ConfigError(f"{label}: line {line}: a character that YAML does not allow.") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # such as the date 2020-13-45
        raise ConfigError(f"{label}: not valid YAML ({one_line(error)}).") from None
    except RecursionError:
        raise ConfigError(f"{label}: nested too deeply.") from None


def _composed(text: str) -> tuple[Any, yaml.Node | None]:
    """(loader, its one document). libyaml takes a seventh of the time, the parser in Python explains errors better."""
    if yaml.__with_libyaml__:
        try:
            loader = yaml.CSafeLoader(text)
            return loader, loader.get_single_node()
        except yaml.YAMLError:
            pass
    loader = yaml.SafeLoader(text)
    return loader, loader.get_single_node()


_YAML_HINT = "look at the indentation, colons, quotes and brackets on this line and the one before"


def _node_problems(node: yaml.Node | None, above: tuple = ()) -> Iterator[str]:
    """Repeated keys and values that contain themselves. Makes every plain key a text (2020, no)."""
    if node in above:
        yield f"line {node.start_mark.line + 1}: the value holds itself by an alias."
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _node_problems(item, (*above, node))
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                key.tag = "tag:yaml.org,2002:str"
                line = key.start_mark.line + 1
                if key.value in lines:
                    yield f"line {line}: the key {_key(key.value)} stands twice (first in line {lines[key.value]})."
                lines.setdefault(key.value, line)
            yield from _node_problems(value, (*above, node))


def layers_of(workflow: Any) -> list[Layer]:
    """The layers of a Snakemake workflow's configuration, lowest precedence first, for `resolve`.

    They are the files of `configfile:`, those of --configfile in the order typed, and the --config overrides,
    as Snakemake merges them. The files are read again: Snakemake's own `config` no longer says which value
    came from where, and it lets a repeated key pass. Files below the working directory are named from there.
    """
    settings = getattr(workflow, "config_settings", None)
    cwd = Path(getattr(workflow, "workdir_init", None) or Path.cwd())
    typed = list(getattr(settings, "configfiles", None) or [])
    # Snakemake appends the files of `configfile:` to the ones typed, though the typed ones win.
    own = [file for file in getattr(workflow, "configfiles", None) or [] if file not in typed]
    layers = [(label, load_yaml(file, label)) for file in [*own, *typed] for label in [_label(file, cwd)]]
    overrides = _overrides(settings)
    return [*layers, (OVERRIDES, overrides)] if overrides else layers


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
    merged: dict = {}
    for word in words:
        key, _, text = word.partition("=")
        # The outer quotes go, as in Snakemake.
        merged = _merge(merged, {key: _parse(text.strip("'\""), f"{OVERRIDES}: {key}")})
    return merged


# Resolving ----------------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """Something wrong: where, said in what words, and the keys that decide which file is named."""

    path: KeyPath
    text: str
    at: list[KeyPath] | None = None


def resolve(layers: list[Layer], traces: dict, tables: Mapping[str, Iterable[str]] | None = None) -> dict:
    """The configuration that results from `layers`, (label, content) with the lowest precedence first.

    `traces` is the content of config/traces.yaml, below all layers. `tables` gives the table names of each
    format, if names under `files` are to be checked. The result has every key, in the schema's order, and in
    its registry the traces of the study only, in the study's order. Raises ConfigError with all problems.
    """
    stack = [(label, _plain(content)) for label, content in [(TRACES_FILE, {"registry": traces}), *layers]]
    merged: dict = {}
    for _, content in stack:
        merged = _merge(merged, content)
    if problems := [
        *schema_problems(merged, _VALIDATOR),
        *_study_problems(merged),
        *_table_problems(merged, tables),
        *_mapping_problems(merged),
        *_sample_problems(merged),
    ]:
        raise ConfigError(_message(problems, stack))
    resolved = _complete(SCHEMA, merged)
    for entry in resolved["registry"].values():
        if "generate" in entry:
            size = SAMPLE_SIZES[entry["format"]]
            entry["generate"] = {key: entry["generate"][key] for key in (size, "seed")}
    resolved["registry"] = {name: resolved["registry"][name] for name in resolved["study"]}
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


# The schema ---------------------------------------------------------------------------------------------


def load_schema() -> dict:
    """The schema of the whole configuration, with the files that it names by $ref in their places, and the formats."""
    schema = _with_files({"$ref": "config.schema.yaml"})
    entry = next(iter(schema["properties"]["registry"]["patternProperties"].values()))
    entry["properties"]["format"]["enum"] = list(declarations())
    return schema


def _with_files(part: Any) -> Any:
    """A part of a schema with the content of each file it names in place of the name; what stands beside it wins."""
    if isinstance(part, list):
        return [_with_files(item) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        part = load_yaml(SCHEMAS / part["$ref"]) | {key: value for key, value in part.items() if key != "$ref"}
    return {key: _with_files(value) for key, value in part.items()}


def child(schema: dict, key: str) -> dict | None:
    """The schema of what stands under `key`, None where the key is not allowed."""
    if key in schema.get("properties", {}):
        return schema["properties"][key]
    patterns = schema.get("patternProperties", {})
    return next((part for pattern, part in patterns.items() if re.search(pattern, key)), None)


def key_paths(schema: dict, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict]]:
    """Every key of the schema with its own schema, depth first; a free name stands as <name>."""
    names = [("<name>", part) for part in schema.get("patternProperties", {}).values()]
    for key, part in [*schema.get("properties", {}).items(), *names]:
        yield (*above, key), part
        yield from key_paths(part, (*above, key))


SCHEMA = load_schema()

# JSON has one kind of number: by its rules 2000.0 is an integer, and nan is within every range.
_TYPES = {
    "integer": lambda _, value: type(value) is int,
    "number": lambda _, value: type(value) in (int, float) and abs(value) < float("inf"),
}
Validator = validators.extend(
    Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(_TYPES)
)
_VALIDATOR = Validator(SCHEMA)


# Problems -----------------------------------------------------------------------------------------------


def schema_problems(document: dict, validator: Validator) -> Iterator[Problem]:
    """What breaks the schema of a document, the whole configuration or another that is made of the same words."""
    for error in validator.iter_errors(document):
        rule, limit, schema, value = error.validator, error.validator_value, error.schema, error.instance
        path = tuple(error.path)
        if rule == "additionalProperties":
            yield from (
                Problem((*path, key), _unknown(key, schema, validator.schema))
                for key in value
                if not child(schema, key)
            )
        elif rule == "required":
            # `then` of an entry names keys that are described outside of it.
            full = schema if "properties" in schema else _entry_schema()
            for key in [key for key in limit if key not in value and key not in _misspelt(value, full)]:
                yield Problem((*path, key), f"is missing; expected {expected(full['properties'][key])}.")
        elif rule == "oneOf" and isinstance(value, dict):
            yield from _tables_from(path, value, schema)
        elif "dependentSchemas" in error.schema_path and rule in ("const", "enum"):
            # The format that another key asks for; a misspelt format is reported as such.
            if value in child(_entry_schema(), "format")["enum"]:
                formats = limit if rule == "const" else " or ".join(limit)
                text = f"works with the format {formats} only, and the format here is {value}."
                yield Problem((*path[:-1], error.schema_path[-4]), text)
        elif rule == "enum" and isinstance(value, str):
            text = f"{show(value)} is not a {_last_name(path)}{mean(value, limit)} Allowed: {', '.join(limit)}."
            yield Problem(path, text)
        elif rule == "type":
            yield Problem(
                path, f"found {_found(value)}; expected {expected(schema)}{_advice(value, schema, validator)}."
            )
        elif rule in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            yield Problem(path, f"{value} is out of range; expected {expected(schema)}.")
        elif rule == "maxLength":
            yield Problem(path, f"is {len(value):,} characters long; at most {limit} are allowed.")
        elif rule in ("minItems", "minLength"):
            yield Problem(path, f"is empty; expected {expected(schema)}.")
        elif rule == "uniqueItems":
            again = next(item for i, item in enumerate(value) if item in value[:i])
            yield Problem(path, f"{show(again)} stands twice in the list.")
        elif rule == "pattern":
            yield Problem(path, f"{show(value)} is not allowed; expected {expected(schema)}.")


def _entry_schema() -> dict:
    """The schema of one trace in the registry."""
    return next(iter(SCHEMA["properties"]["registry"]["patternProperties"].values()))


def _tables_from(path: KeyPath, entry: dict, schema: dict) -> Iterator[Problem]:
    """Raw tables are either there or made; an entry merged over another can end up with both."""
    if "folder" in entry and "generate" in entry:
        text = "has both folder and generate once all files are merged; a trace has one of them. "
        text += "Give your own data a name of its own."
        yield Problem(path, text, at=[(*path, "folder"), (*path, "generate")])
    elif not {"folder", "generate"} & _misspelt(entry, schema):
        text = "has neither folder nor generate; say where its raw tables are, for example "
        yield Problem(path, text + "folder: path/to/the/csv/files.")


def _study_problems(merged: dict) -> Iterator[Problem]:
    """Names in the study that no trace has."""
    study, registry = merged.get("study"), merged.get("registry")
    for name in study if isinstance(study, list) and isinstance(registry, dict) else []:
        # A name that no trace can have is a problem of its own.
        can_be_a_name = isinstance(name, str) and re.search(SCHEMA["properties"]["study"]["items"]["pattern"], name)
        if can_be_a_name and name not in registry:
            names = ", ".join(sorted(registry))
            text = f"{show(name)} is not in the registry{mean(name, registry)} In the registry: {names}."
            yield Problem(("study",), text)


def _table_problems(merged: dict, tables: Mapping[str, Iterable[str]] | None) -> Iterator[Problem]:
    """File names and downloads given for tables that the format does not have."""
    registry = merged.get("registry")
    for name, entry in registry.items() if tables and isinstance(registry, dict) else []:
        for key in ("files", "download") if isinstance(entry, dict) else ():
            named = entry.get(key)
            known = list(tables.get(str(entry.get("format")), [])) if isinstance(named, dict) else []
            for table in [table for table in named if table not in known] if known else []:
                text = f"the format {entry['format']} has no such table"
                text += f"{mean(table, known)} Allowed here: {', '.join(known)}."
                yield Problem(("registry", name, key, table), text)


def _sample_problems(merged: dict) -> Iterator[Problem]:
    """The size of a synthetic trace in what another format is made of."""
    registry = merged.get("registry")
    for name, entry in registry.items() if isinstance(registry, dict) else []:
        made = entry.get("generate") if isinstance(entry, dict) else None
        size = SAMPLE_SIZES.get(str(entry.get("format"))) if isinstance(made, dict) else None
        for key in [key for key in made if key in SAMPLE_SIZES.values() and key != size] if size else []:
            text = (
                f"a sample of the format {entry['format']} is as large as {size} says; write {size} in place of {key}."
            )
            yield Problem(("registry", name, "generate", key), text)


def _mapping_problems(merged: dict) -> Iterator[Problem]:
    """Column mappings and windows that the schema lets pass and that make no sense."""
    registry = merged.get("registry")
    for name, entry in registry.items() if isinstance(registry, dict) else []:
        if not isinstance(entry, dict):
            continue
        problems = [*window_problems(entry)]
        if entry.get("format") in ("table", "sacct"):
            problems += [*(mapping_problems(entry) if entry["format"] == "table" else ()), *zone_problems(entry)]
        for path, text in problems:
            yield Problem(("registry", name, *path), text)


def _message(problems: list[Problem], stack: list[Layer]) -> str:
    """One line a problem, the files in the order of their precedence."""
    lines = []
    for problem in problems:
        at = max(_last_layer(path, stack) for path in problem.at or [problem.path])
        label = stack[at][0]
        # In the registry's own file the traces stand at the top.
        path = problem.path[1:] if label == TRACES_FILE and len(problem.path) > 1 else problem.path
        lines.append((at, f"{label}: {dotted(path)}: {problem.text}"))
    return "\n".join(line for _, line in sorted(lines, key=lambda pair: pair[0]))


def _last_layer(path: KeyPath, stack: list[Layer]) -> int:
    """The last layer that has `path`, or as much of it as any layer has (a key may be missing)."""
    depths = []
    for _, content in stack:
        depth = 0
        for key in path:
            if not isinstance(content, dict) or key not in content:
                break
            content, depth = content[key], depth + 1
        depths.append(depth)
    return max(range(len(stack)), key=lambda i: (depths[i], i))


# Words --------------------------------------------------------------------------------------------------


def kind(schema: dict) -> str:
    """The type of a key in words."""
    if schema["type"] == "array":
        items = {"string": "names", "integer": "whole numbers", "object": "mappings"}
        return f"a list of {items[schema['items']['type']]}"
    words = {"string": "text", "integer": "a whole number", "number": "a number", "object": "a mapping"}
    words |= {"boolean": "true or false", "array": "a list of names"}
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join(words[type_] for type_ in types)


def limits(schema: dict) -> str:
    """Which values of its type a key takes, in words; nothing if all."""
    parts = [", ".join(schema.get("enum", [])), schema.get("$comment")]
    if "maximum" in schema:
        parts.append(f"{schema['minimum']} to {schema['maximum']}")
    elif "minimum" in schema:
        parts.append(f"{schema['minimum']} or more")
    if "exclusiveMinimum" in schema:
        parts.append(f"above {schema['exclusiveMinimum']} and below {schema['exclusiveMaximum']}")
    parts += ["at least one"] if "minItems" in schema else []
    parts += ["each once"] if "uniqueItems" in schema else []
    parts += [limits(schema["items"])] if "items" in schema else []
    return "; ".join(filter(None, parts))


def expected(schema: dict) -> str:
    """What a key takes, in words, with an example."""
    if "properties" in schema:
        text = f"a mapping with the keys {', '.join(schema['properties'])}"
        return text if schema["type"] == "object" else f"{schema['$comment']}, or {text}"
    values = limits(schema)
    example = schema["examples"][0] if "examples" in schema else schema.get("default")
    text = f"{kind(schema)} ({values})" if values else kind(schema)
    return text if example in (None, {}) else f"{text}, for example {flow(example)}"


def flow(value: Any) -> str:
    """A value as YAML on one line."""
    return yaml.safe_dump(value, default_flow_style=True, width=float("inf"), sort_keys=False).split("\n")[0]


def _unknown(key: str, schema: dict, whole: dict) -> str:
    """What to say about a key that the schema, a part of the whole one, does not have."""
    if "properties" not in schema and "$comment" in schema:
        return f"this cannot be a name; expected {schema['$comment']}."
    if "properties" not in schema:
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", key).strip("_")
        if name and name == key:
            return f"results/ has something else under this name; call the trace another, for example my_{name}."
        return f"a name holds letters, digits, _ and - only{f', for example {name}' if name else ''}."
    allowed = list(schema["properties"])
    text = f"there is no such key{mean(key, allowed)}"
    # The right key in the wrong place, spelt right or, with nothing near it here, nearly so.
    paths = [path for path, _ in key_paths(whole) if path[-1] != "<name>"]
    near = None if _nearest(key, allowed) else _nearest(key, [path[-1] for path in paths])
    for path in paths:
        if key in (path[-1], ".".join(path)) or near == path[-1]:
            nested = ": {".join(path) + ": ..." + "}" * (len(path) - 1)
            text = f"there is no such key here; did you mean {nested}?"
            break
    return f"{text} Allowed here: {', '.join(allowed)}."


def _misspelt(value: dict, schema: dict) -> set[str]:
    """The keys that were probably meant by the unknown ones: not worth a second complaint."""
    unknown = [key for key in value if not child(schema, key)]
    return {near for key in unknown if (near := _nearest(key, schema["properties"]))}


def _nearest(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word nearest to a misspelt one; capitals and - for _ are small slips."""
    plain = {name.casefold().replace("-", "_"): name for name in allowed}
    # One wrong letter of two is half of the word.
    cutoff = 0.6 if len(word) > 2 else 0.5
    found = difflib.get_close_matches(word.casefold().replace("-", "_"), plain, n=1, cutoff=cutoff)
    return plain[found[0]] if found else None


def mean(word: str, allowed: Iterable[str]) -> str:
    """What was probably meant by a word that is not allowed; a full stop where nothing is near it."""
    near = _nearest(word, allowed)
    return f"; did you mean {near}?" if near else "."


def _advice(value: Any, schema: dict, validator: Validator) -> str:
    """How to write what was probably meant by a value of the wrong type."""
    right = validator.evolve(schema=schema).is_valid
    if schema["type"] == "array":
        return next((f"; write {flow(items)}" for items in ([value], [show(value)]) if right(items)), "")
    if schema["type"] == "string" and isinstance(value, bool | int | float | datetime.date):
        return "; put it in quotes"
    if schema["type"] in ("number", "integer") and isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value)
            number = int(number) if number.is_integer() else number
            if right(number):
                return f"; write {number}"
    return ""


def _found(value: Any) -> str:
    """What stands where something else should, in words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"{str(value).lower()} (yes, no, on and off mean true or false)"
    if isinstance(value, str):
        return f"the text {show(value)}"
    if isinstance(value, float) and abs(value) == float("inf"):
        return "a number that is too large"
    if isinstance(value, int | float):
        return f"the {'whole ' if isinstance(value, int) else ''}number {show(value)}"
    if isinstance(value, datetime.date):
        return f"the date {value}"
    return {dict: "a mapping", list: "a list"}.get(type(value), show(value))


def show(value: Any) -> str:
    """A value on one line, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _key(key: str) -> str:
    """A key in a key path: in quotes if it is not a plain word."""
    return key if re.fullmatch(r"[\w-]+", key) else show(key)


def dotted(path: KeyPath) -> str:
    """A key path as it is written in messages: rules[3].text[0]."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{_key(key)}" for key in path)
    return text.removeprefix(".")


def _last_name(path: KeyPath) -> str:
    """The last key of a path that is no place in a list."""
    return next(key for key in reversed(path) if isinstance(key, str))


def one_line(text: object) -> str:
    """A text with its line breaks as blanks."""
    return " ".join(str(text).split())
