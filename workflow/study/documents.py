"""Documents in YAML: read, compared with their schema, and what is wrong with them in plain words.

The configuration, a schema of raw tables, the reasons of failures and the published findings are all checked here, so
that what is wrong is said in the same words everywhere.
"""

import contextlib
import datetime
import difflib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from study.messages import ConfigError, cut, found, key_text, show
from study.yaml_files import KeyPath, at, load_yaml

MOST_PROBLEMS = 200
SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"


class Problem(NamedTuple):
    """Something wrong: where, said in what words, and the keys that decide which file is named."""

    path: KeyPath
    text: str
    at: list[KeyPath] | None = None


# Reading ----------------------------------------------------------------------------------------------


def load_document(
    path: str | Path,
    schema: dict,
    label: str | None = None,
    contradictions: Callable[[dict], Iterable[Problem]] = lambda _: (),
) -> dict:
    """The content of a YAML file that keeps to a schema and of which `contradictions` finds none.

    Raises ConfigError with a line for each problem, in the order of the file.
    """
    label = str(path) if label is None else label
    document = load_yaml(path, label)
    if problems := some(schema_problems(document, schema)) or some(contradictions(document)):
        said = sorted((document.place(path), dotted(path, document), text) for path, text, _ in problems)
        raise ConfigError("\n".join(f"{label}: {at(place)}{where}: {text}" for place, where, text in said))
    return document


def some(problems: Iterable[Problem]) -> list[Problem]:
    """The first of them, more than a message shows: of a long list of wrong values each takes time to explain."""
    return list(itertools.islice(problems, MOST_PROBLEMS))


# Schemas ----------------------------------------------------------------------------------------------


def load_schema(name: str) -> dict:
    """The schema of a file, written out: with the files that it names by $ref and the types of types.yaml in their
    places, and every mapping that names its keys closed."""
    return _written_out({"$ref": name}, load_yaml(SCHEMAS / "types.yaml"))


def _written_out(part: dict, types: dict) -> dict:
    """A part of a schema as above; what stands beside a $ref or a type of ours wins."""
    part = dict(part)
    if "$ref" in part:
        part = load_yaml(SCHEMAS / part.pop("$ref")) | part
    while str(part.get("type")) in types:
        part = types[part.pop("type")] | part
    if "items" in part:
        part["items"] = _written_out(part["items"], types)
    for key in ("properties", "patternProperties"):
        if key in part:
            part[key] = {name: _written_out(inner, types) for name, inner in part[key].items()}
            part = {"type": "object", "additionalProperties": False} | part
    return part


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


# Of hundreds of keys elsewhere, one that shares half of the letters was hardly meant.
NEARLY_RIGHT = 0.8

# Problems ---------------------------------------------------------------------------------------------


def schema_problems(value: Any, schema: dict, path: KeyPath = (), whole: dict | None = None) -> Iterator[Problem]:
    """What breaks the schema, at any depth: `value` stands at `path` of a document whose schema is `whole`."""
    whole = whole or schema
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_TYPES[name](value) for name in types):
        yield Problem(path, f"found {found(value)}; expected {expected(schema)}{_advice(value, schema)}.")
    elif isinstance(value, dict):
        yield from _mapping_problems(value, schema, path, whole)
    elif isinstance(value, list):
        times = Counter(map(repr, value)) if schema.get("uniqueItems") else {}
        yield from (Problem(path, f"{cut(item)} stands twice in the list.") for item in times if times[item] > 1)
        for number, item in enumerate(value):
            yield from schema_problems(item, schema["items"], (*path, number), whole)
        if len(value) < schema.get("minItems", 0):
            yield Problem(path, f"is empty; expected {expected(schema)}.")
    elif isinstance(value, str):
        yield from (Problem(path, text) for text in _text_problems(value, schema))
    elif isinstance(value, int | float) and not _in_range(value, schema):
        yield Problem(path, f"{value} is out of range; expected {expected(schema)}.")


# Unlike in JSON, 2000.0 is no integer here, true no number, and nan and inf are neither.
_TYPES = {
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float) and abs(value) < float("inf"),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def _mapping_problems(value: dict, schema: dict, path: KeyPath, whole: dict) -> Iterator[Problem]:
    known = schema.get("properties", {})
    # What was probably meant by an unknown key is not missing too.
    meant = {_nearest(key, known) for key in value if child(schema, key) is None}
    for key, item in value.items():
        if part := child(schema, key):
            yield from schema_problems(item, part, (*path, key), whole)
        else:
            yield Problem((*path, key), _unknown(key, schema, whole))
    for key, part in known.items():
        needed = key in schema.get("required", [])
        for other, words in part.get("with", {}).items():
            word = value.get(other)
            needed = needed or (part.get("needed", False) and word in words)
            # A misspelt word is reported as such.
            if (
                key in value
                and isinstance(word, str)
                and word not in words
                and word in known[other].get("enum", [word])
            ):
                text = f"works with the {other} {' or '.join(words)} only, and the {other} here is {word}."
                yield Problem((*path, key), text)
        if needed and key not in value and key not in meant:
            yield Problem((*path, key), f"is missing; expected {expected(part)}.")
    if len(value) < schema.get("minProperties", 0):
        free = [key for key in known or ["a name"] if key not in schema.get("required", [])]
        yield Problem(path, f"says too little; give it one of {', '.join(free)}.")
    ways = [way["required"] for way in schema.get("oneOf", [])]
    if ways and sum(value.keys() >= set(way) for way in ways) != 1:
        yield Problem(path, f"needs {', or '.join(' and '.join(way) for way in ways)}: one of them, and no other.")


def _text_problems(value: str, schema: dict) -> Iterator[str]:
    if value not in (allowed := schema.get("enum", [value])):
        yield f"{show(value)} is not allowed{mean(value, allowed)} Allowed: {', '.join(allowed)}."
    elif not value and "minLength" in schema:
        yield f"is empty; expected {expected(schema)}."
    elif not re.search(schema.get("pattern", ""), value):
        yield f"{show(value)} is not allowed; expected {expected(schema)}."
    if len(value) > schema.get("maxLength", len(value)):
        yield f"is {len(value):,} characters long; at most {schema['maxLength']} are allowed."


def _in_range(value: float, schema: dict) -> bool:
    above, below = (schema.get(f"exclusive{end}") for end in ("Minimum", "Maximum"))
    within = schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return within and (above is None or value > above) and (below is None or value < below)


# Words ------------------------------------------------------------------------------------------------


def kind(schema: dict) -> str:
    """The type of a key in words."""
    words = {"string": "text", "integer": "a whole number", "number": "a number", "object": "a mapping"}
    words |= {"boolean": "true or false", "array": "a list of names", "null": "nothing"}
    lists = {"integer": "a list of whole numbers", "number": "a list of numbers", "object": "a list of mappings"}
    lists |= {"array": "a list of lists of names", "['number', 'string']": "a list of numbers or texts"}
    if schema["type"] == "array":
        return lists.get(str(schema["items"]["type"]), words["array"])
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
        below = f" and below {schema['exclusiveMaximum']}" if "exclusiveMaximum" in schema else ""
        parts.append(f"above {schema['exclusiveMinimum']}{below}")
    parts += ["at least one"] if "minItems" in schema else []
    parts += ["each once"] if "uniqueItems" in schema else []
    parts += [limits(schema["items"])] if "items" in schema else []
    parts += [f"{key} {' or '.join(words)} only" for key, words in schema.get("with", {}).items()]
    return "; ".join(filter(None, dict.fromkeys(parts)))


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
    if "properties" not in schema:
        if "$comment" in schema:
            return f"this cannot be a name; expected {schema['$comment']}."
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", key).strip("_")
        if name and name == key:
            return f"this name means something else; call the trace another, for example my_{name}."
        return f"a name holds letters, digits, _ and - only{f', for example {name}' if name else ''}."
    allowed = list(schema["properties"])
    text = f"there is no such key{mean(key, allowed)}"
    # The right key in the wrong place, spelt right or, with nothing near it here, nearly so.
    paths = [path for path, _ in key_paths(whole) if path[-1] != "<name>"]
    near = None if _nearest(key, allowed) else _nearest(key, [path[-1] for path in paths], NEARLY_RIGHT)
    for path in paths:
        if key in (path[-1], ".".join(path)) or near == path[-1]:
            nested = ": {".join(path) + ": ..." + "}" * (len(path) - 1)
            text = f"there is no such key here; did you mean {nested}?"
            break
    return f"{text} Allowed here: {', '.join(allowed)}."


def _nearest(word: str, allowed: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The allowed word nearest to a misspelt one; capitals and - for _ are small slips. cutoff: of difflib's ratio."""
    # Of very many, and of very long ones, the nearest is no help worth its time.
    plain = {name.casefold().replace("-", "_"): name for name in itertools.islice(allowed, 1000) if len(name) < 100}
    if len(word) > 100:
        return None
    # One wrong letter of two is half of the word.
    cutoff = cutoff if len(word) > 2 else cutoff - 0.1
    found = difflib.get_close_matches(word.casefold().replace("-", "_"), plain, n=1, cutoff=cutoff)
    return plain[found[0]] if found else None


def mean(word: str, allowed: Iterable[str], stop: str = ".") -> str:
    """What was probably meant by a word that is not allowed; `stop` where nothing is near it."""
    near = _nearest(word, allowed)
    return f"; did you mean {near}?" if near else stop


def _advice(value: Any, schema: dict) -> str:
    """How to write what was probably meant by a value of the wrong type."""

    def right(other: Any) -> bool:
        return not any(schema_problems(other, schema))

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


def dotted(path: KeyPath, document: Any = None) -> str:
    """A key path as in messages: rules[3].text[0]; an item of `document` that has a name or an id, by that."""
    text = ""
    for key in path:
        document = document[key] if isinstance(document, list) else (document or {}).get(key)
        about = document if isinstance(key, int) and isinstance(document, dict) else {}
        name = about.get("name", about.get("id", key))
        text += f".{key_text(name)}" if isinstance(name, str) else f"[{key}]"
    return text.removeprefix(".")
