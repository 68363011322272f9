"""Documents in YAML: reading, checking against a schema, and messages about what is wrong.

The configuration, schemas of raw tables, failure reasons and published findings are all checked here, so their messages
use the same words. jsonschema finds the errors; its own messages name neither the allowed nor the probably meant value.
"""

import contextlib
import datetime
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from ttf.engine.checkout import CHECKOUT
from ttf.engine.closest_match import closest_match
from ttf.study.configuration.messages import ConfigError, describe_value, format_key, show, truncate
from ttf.study.configuration.named_files import read_contents
from ttf.study.configuration.yaml_files import Document, KeyPath, format_position, load_yaml
from ttf.study.running.start_cache import load_or_compute

MOST_PROBLEMS = 200
SCHEMAS = CHECKOUT / "workflow" / "schemas"


class Problem(NamedTuple):
    """A problem: key path, message, and the keys that decide which file is named."""

    path: KeyPath
    text: str
    deciding_keys: list[KeyPath] | None = None


# Reading ----------------------------------------------------------------------------------------------


def load_document(
    path: str | Path,
    schema: str,
    label: str | None = None,
    contradictions: Callable[[dict], Iterable[Problem]] = lambda _: (),
) -> dict:
    """Return the content of a YAML file that follows a schema and has no contradictions.

    label: the file's name in messages, by default its path. contradictions: finds problems in a document that follows
    the schema. Raises ConfigError, one problem per line.
    """
    label = str(path) if label is None else label

    def raise_problems(problems: Iterable[Problem], document: Document | None = None) -> None:
        if problems := take_first(problems):
            document = document or load_yaml(path, label)  # a cached document has no line numbers
            located = sorted(
                (document.find_position(path), format_key_path(path, document), text) for path, text, _ in problems
            )
            lines = [f"{label}: {format_position(position)}{key}: {text}" for position, key, text in located]
            raise ConfigError("\n".join(lines))

    def read_document() -> dict:
        document = load_yaml(path, label)
        raise_problems(find_schema_problems(document, load_schema(schema)), document)
        return document

    if Path(path).is_relative_to(CHECKOUT):
        # Reading and checking the findings, 220 kB, takes 0.3 s of a start of 1 s.
        texts = _read_code_and_schemas(), schema.encode(), read_contents(path, label)
        document = load_or_compute(read_document, *texts)
    else:
        document = read_document()
    raise_problems(contradictions(document))
    return document


@cache
def _read_code_and_schemas() -> bytes:
    module = Path(__file__)
    return b"".join(
        file.read_bytes() for file in (module, module.with_name("yaml_files.py"), *sorted(SCHEMAS.iterdir()))
    )


def load_extended(
    shipped: Path, own: str, find_problems: Callable[[dict, dict | None], Iterable[Problem]] = lambda *_: ()
) -> list[dict]:
    """Return the user's own document, if any, and the shipped document that it extends.

    own: its path, empty for none; with `extends: false` it stands alone. find_problems: finds contradictions in a
    document, given the extended document: empty if it stands alone, None for the shipped document.
    """
    schema = f"{shipped.stem}.schema.yaml"
    base = load_document(shipped, schema, f"config/{shipped.name}", lambda document: find_problems(document, None))
    if not own:
        return [base]
    label = f"{shipped.stem}: {own}"
    # The file's own `extends` decides which names it may use.
    extended = [] if load_yaml(own, label).get("extends") is False else [base]
    first = load_document(own, schema, label, lambda document: find_problems(document, *(extended or [{}])))
    return [first, *extended]


def take_first(problems: Iterable[Problem]) -> list[Problem]:
    """Return the first problems, more than a message shows; explaining every one of a long list takes time."""
    return list(itertools.islice(problems, MOST_PROBLEMS))


# Schemas ----------------------------------------------------------------------------------------------


@cache
def load_schema(name: str) -> dict:
    """Return the schema of a file, each $ref and type of types.yaml expanded, and mappings of named keys closed."""

    def expand() -> dict:
        return _expand_schema({"$ref": name}, load_yaml(SCHEMAS / "types.yaml"))

    return load_or_compute(expand, _read_code_and_schemas(), name.encode())


def _expand_schema(schema: dict, types: dict) -> dict:
    """Return a part of a schema, expanded; keys next to a $ref or a type take precedence."""
    schema = dict(schema)
    if "$ref" in schema:
        schema = load_yaml(SCHEMAS / schema.pop("$ref")) | schema
    while str(schema.get("type")) in types:
        schema = types[schema.pop("type")] | schema
    if "items" in schema:
        schema["items"] = _expand_schema(schema["items"], types)
    for key in ("properties", "patternProperties"):
        if key in schema:
            schema[key] = {name: _expand_schema(child, types) for name, child in schema[key].items()}
            schema = {"type": "object", "additionalProperties": False} | schema
    # The type is checked first, so that a value of the wrong type gives one message.
    return {"type": schema["type"]} | schema


def get_child_schema(schema: dict, key: str) -> dict | None:
    """Return the schema of the value under `key`; None if the key is not allowed."""
    if key in schema.get("properties", {}):
        return schema["properties"][key]
    patterns = schema.get("patternProperties", {})
    return next((child for pattern, child in patterns.items() if re.search(pattern, key)), None)


def iterate_key_paths(schema: dict, parents: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict]]:
    """Yield every key path of the schema with its schema, depth first; a free name is <name>."""
    names = [("<name>", child) for child in schema.get("patternProperties", {}).values()]
    for key, child in [*schema.get("properties", {}).items(), *names]:
        yield (*parents, key), child
        yield from iterate_key_paths(child, (*parents, key))


# Problems ---------------------------------------------------------------------------------------------


def find_schema_problems(value: Any, schema: dict) -> Iterator[Problem]:
    """Yield the schema violations at any depth; only one for a value that should be a mapping."""
    explained = set()
    for error in _Validator(schema).iter_errors(value):
        path = tuple(error.absolute_path)
        step = (path, error.validator if isinstance(error.instance, dict) else "")
        if step not in explained:
            explained.add(step)
            yield from (Problem((*path, *key), text) for key, text in _explain_error(error, schema))


def _explain_error(error: ValidationError, document_schema: dict) -> Iterator[tuple[KeyPath, str]]:
    """Yield (path within the value, message) for an error."""
    value, schema = error.instance, error.schema
    match error.validator:
        case "type":
            yield (
                (),
                f"found {describe_value(value)}; expected {describe_expected(schema)}{_suggest_fix(value, schema)}.",
            )
        case "additionalProperties":
            for key in [key for key in value if get_child_schema(schema, key) is None]:
                yield (key,), _describe_unknown_key(key, schema, document_schema)
        case "required":
            keys = schema["properties"]
            # A required key that an unknown key probably means is not reported as missing.
            meant_keys = {key if get_child_schema(schema, key) else closest_match(key, keys) for key in value}
            for key in [key for key in schema["required"] if key not in meant_keys]:
                yield (key,), f"is missing; expected {describe_expected(keys[key])}."
        case "properties":
            yield (), error.message
        case "minProperties":
            optional = [key for key in schema.get("properties", ["a name"]) if key not in schema.get("required", [])]
            yield (), f"needs at least one more key: {', '.join(optional)}."
        case "oneOf":
            alternatives = [" and ".join(alternative["required"]) for alternative in schema["oneOf"]]
            yield (), f"needs {', or '.join(alternatives)}: exactly one of them."
        case "uniqueItems":
            for item in [item for item, count in Counter(map(repr, value)).items() if count > 1]:
                yield (), f"{truncate(item)} appears twice in the list."
        case "maxLength":
            yield (), f"is {len(value):,} characters long; at most {schema['maxLength']} are allowed."
        case "enum" if isinstance(value, str):
            allowed = schema["enum"]
            yield (), f"{show(value)} is not allowed{suggest_match(value, allowed)} Allowed: {', '.join(allowed)}."
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            yield (), f"{value} is out of range; expected {describe_expected(schema)}."
        case "minLength" | "minItems" | "pattern" as keyword:
            reason = f"{show(value)} is not allowed" if keyword == "pattern" else "is empty"
            yield (), f"{reason}; expected {describe_expected(schema)}."


def _check_properties(validator: Any, properties: dict, value: Any, schema: dict) -> Iterator[ValidationError]:
    """Check keyword `properties` with two extensions: `with`, and `needed` for a key that another key requires.

    needed: true, or the words of the other key that require it.
    """
    yield from Draft202012Validator.VALIDATORS["properties"](validator, properties, value, schema)
    if not isinstance(value, dict):
        return
    dependencies = [(key, *pair) for key, part in properties.items() for pair in part.get("with", {}).items()]
    for key, other_key, words in dependencies:
        # Misspelt words and keys have messages of their own.
        is_word = value.get(other_key) in properties[other_key].get("enum", [value.get(other_key)])
        is_meant = key in value or any(closest_match(name, [key]) for name in value.keys() - properties.keys())
        if key in value and isinstance(value.get(other_key), str) and is_word and value[other_key] not in words:
            text = f"works with the {other_key} {' or '.join(words)} only; here it is {value[other_key]}."
            yield ValidationError(text, path=[key])
        needed = properties[key].get("needed", [])
        if value.get(other_key) in (words if needed is True else needed) and key not in value and not is_meant:
            yield ValidationError(f"is missing; expected {describe_expected(properties[key])}.", path=[key])


def _check_uniqueness(validator: Any, is_required: bool, value: Any, schema: dict) -> Iterator[ValidationError]:
    # jsonschema itself compares all pairs, which takes minutes for a list of several types.
    if isinstance(value, list) and len(set(map(repr, value))) < len(value):
        yield ValidationError("appears twice")


# Unlike in JSON Schema, 2000.0 is not an integer, true is not a number, and nan and inf are neither.
_TYPES = Draft202012Validator.TYPE_CHECKER.redefine_many(
    {
        "integer": lambda _, value: type(value) is int,
        "number": lambda _, value: type(value) in (int, float) and abs(value) < float("inf"),
    }
)
_KEYWORDS = {"properties": _check_properties, "uniqueItems": _check_uniqueness}
_Validator = extend(Draft202012Validator, _KEYWORDS, type_checker=_TYPES)


# Words ------------------------------------------------------------------------------------------------

# Among hundreds of keys elsewhere in the schema, only a very similar one was probably meant.
MIN_SIMILARITY = 0.8


def describe_type(schema: dict) -> str:
    """Return the type of a key in words."""
    words = {
        "string": "text",
        "integer": "a whole number",
        "number": "a number",
        "object": "a mapping",
        "boolean": "true or false",
        "array": "a list of names",
        "null": "nothing",
    }
    list_words = {
        "integer": "a list of whole numbers",
        "number": "a list of numbers",
        "object": "a list of mappings",
        "array": "a list of lists of names",
        "['number', 'string']": "a list of numbers or texts",
    }
    if schema["type"] == "array":
        return list_words.get(str(schema["items"]["type"]), words["array"])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join(words[type_] for type_ in types)


def describe_limits(schema: dict) -> str:
    """Return the allowed values of a key in words; empty if all values of its type are allowed."""
    parts = [", ".join(schema.get("enum", [])), schema.get("$comment")]
    if "maximum" in schema:
        parts.append(f"{schema['minimum']} to {schema['maximum']}")
    elif "minimum" in schema:
        parts.append(f"{schema['minimum']} or more")
    if "exclusiveMinimum" in schema:
        upper_bound = f" and below {schema['exclusiveMaximum']}" if "exclusiveMaximum" in schema else ""
        parts.append(f"above {schema['exclusiveMinimum']}{upper_bound}")
    parts += ["at least one"] if "minItems" in schema else []
    parts += ["each once"] if "uniqueItems" in schema else []
    parts += [describe_limits(schema["items"])] if "items" in schema else []
    parts += [f"{key} {' or '.join(words)} only" for key, words in schema.get("with", {}).items()]
    return "; ".join(filter(None, dict.fromkeys(parts)))


def describe_expected(schema: dict) -> str:
    """Return the type, limits and an example of a key in words."""
    if "properties" in schema:
        text = f"a mapping with the keys {', '.join(schema['properties'])}"
        return text if schema["type"] == "object" else f"{schema['$comment']}, or {text}"
    values = describe_limits(schema)
    example = schema["examples"][0] if "examples" in schema else schema.get("default")
    text = f"{describe_type(schema)} ({values})" if values else describe_type(schema)
    return text if example in (None, {}) else f"{text}, for example {to_inline_yaml(example)}"


def to_inline_yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=float("inf"), sort_keys=False).split("\n")[0]


def _describe_unknown_key(key: str, schema: dict, document_schema: dict) -> str:
    if "properties" not in schema:
        if "$comment" in schema:
            return f"this cannot be a name; expected {schema['$comment']}."
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", key).strip("_")
        if name and name == key:
            return f"this name is reserved; choose another name for the trace, for example my_{name}."
        return f"a name may contain letters, digits, _ and - only{f', for example {name}' if name else ''}."
    allowed = list(schema["properties"])
    text = f"there is no such key{suggest_match(key, allowed)}"
    # The key may belong elsewhere: spelt right, or almost right if nothing here is close.
    paths = [path for path, _ in iterate_key_paths(document_schema) if path[-1] != "<name>"]
    names = [] if closest_match(key, allowed) else [path[-1] for path in paths]
    closest = closest_match(key, names, MIN_SIMILARITY)
    for path in paths:
        if key in (path[-1], ".".join(path)) or closest == path[-1]:
            nested = ": {".join(path) + ": ..." + "}" * (len(path) - 1)
            text = f"there is no such key here; did you mean {nested}?"
            break
    return f"{text} Allowed here: {', '.join(allowed)}."


def suggest_match(word: str, allowed: Iterable[str], ending: str = ".") -> str:
    """Return "; did you mean ...?" for a word that is not allowed; `ending` if nothing is close."""
    closest = closest_match(word, allowed)
    return f"; did you mean {closest}?" if closest else ending


def _suggest_fix(value: Any, schema: dict) -> str:
    """Return how to write the probably meant value of the right type."""
    is_valid = _Validator(schema).is_valid
    if schema["type"] == "array":
        return next((f"; write {to_inline_yaml(items)}" for items in ([value], [show(value)]) if is_valid(items)), "")
    if schema["type"] == "string" and isinstance(value, bool | int | float | datetime.date):
        return "; put it in quotes"
    if schema["type"] in ("number", "integer") and isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value)
            number = int(number) if number.is_integer() else number
            if is_valid(number):
                return f"; write {number}"
    return ""


def format_key_path(path: KeyPath, document: Any = None) -> str:
    """Return a key path such as rules[3].text[0]; an item of `document` with a name or an id appears by that name."""
    text = ""
    for key in path:
        is_item = isinstance(document, list) and isinstance(key, int)
        document = document[key] if is_item else (document or {}).get(key)
        item = document if is_item and isinstance(document, dict) else {}
        name = item.get("name", item.get("id", key))
        text += f".{format_key(name)}" if isinstance(name, str) else f"[{key}]"
    return text.removeprefix(".")
