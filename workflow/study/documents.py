"""Documents in YAML: read, compared with their schema, and what is wrong with them in plain words.

The configuration, a schema of raw tables, the reasons of failures and the published findings are all checked here, so
that what is wrong is said in the same words everywhere. jsonschema finds what breaks a schema; the words are ours, as
its own name neither what a person may write nor what was probably meant.
"""

import contextlib
import datetime
import difflib
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

from study.messages import ConfigError, cut, found, key_text, show
from study.named_files import contents
from study.start_cache import remembered
from study.yaml_files import Document, KeyPath, at, load_yaml

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
    schema: str,
    label: str | None = None,
    contradictions: Callable[[dict], Iterable[Problem]] = lambda _: (),
) -> dict:
    """The content of a YAML file that keeps to the schema of this name and of which `contradictions` finds none.

    Raises ConfigError with a line for each problem, in the order of the file.
    """
    label = str(path) if label is None else label

    def refuse(problems: Iterable[Problem], document: Document | None = None) -> None:
        if problems := some(problems):
            document = document or load_yaml(path, label)  # what is remembered comes without its lines
            lines = sorted((document.place(path), dotted(path, document), text) for path, text, _ in problems)
            raise ConfigError("\n".join(f"{label}: {at(place)}{where}: {text}" for place, where, text in lines))

    def work_out() -> dict:
        document = load_yaml(path, label)
        refuse(schema_problems(document, load_schema(schema)), document)
        return document

    # To read and check the findings, 220 kB, takes 0.3 s of a start of 1 s.
    document = remembered(work_out, _programs(), schema.encode(), contents(path, label))
    refuse(contradictions(document))
    return document


@cache
def _programs() -> bytes:
    """What decides how a document is read: this module, that of YAML files, and the schemas."""
    here = Path(__file__)
    return b"".join(file.read_bytes() for file in (here, here.with_name("yaml_files.py"), *sorted(SCHEMAS.iterdir())))


def load_extended(
    shipped: Path,
    own: str,
    contradictions: Callable[[dict, dict | None], Iterable[Problem]] = lambda *_: (),
) -> list[dict]:
    """The shipped document, and before it a person's own (a path, nothing for none), which stands alone if it says
    `extends: false`.

    contradictions: finds them in a document, given the one that it extends: an empty one if it stands alone, None if it
    is the shipped one.
    """
    schema = f"{shipped.stem}.schema.yaml"
    base = load_document(shipped, schema, f"config/{shipped.name}", lambda document: contradictions(document, None))
    if not own:
        return [base]
    label = f"{shipped.stem}: {own}"
    # What the file says of itself decides which names it may use.
    below = [] if load_yaml(own, label).get("extends") is False else [base]
    first = load_document(own, schema, label, lambda document: contradictions(document, *(below or [{}])))
    return [first, *below]


def some(problems: Iterable[Problem]) -> list[Problem]:
    """The first of them, more than a message shows: of a long list of wrong values each takes time to explain."""
    return list(itertools.islice(problems, MOST_PROBLEMS))


# Schemas ----------------------------------------------------------------------------------------------


@cache
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
    # The type is looked at first: a value of another is said to be that, and nothing else.
    return {"type": part["type"]} | part


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


# Problems ---------------------------------------------------------------------------------------------


def schema_problems(value: Any, schema: dict) -> Iterator[Problem]:
    """What breaks the schema, at any depth; of a value that is no mapping one problem."""
    explained = set()
    for error in _Validator(schema).iter_errors(value):
        path = tuple(error.absolute_path)
        step = (path, error.validator if isinstance(error.instance, dict) else "")
        if step not in explained:
            explained.add(step)
            yield from (Problem((*path, *key), text) for key, text in _explain(error, schema))


def _explain(error: ValidationError, whole: dict) -> Iterator[tuple[KeyPath, str]]:
    """(path within the value, what is wrong) of an error in a document whose schema is `whole`."""
    value, schema = error.instance, error.schema
    match error.validator:
        case "type":
            yield (), f"found {found(value)}; expected {expected(schema)}{_advice(value, schema)}."
        case "additionalProperties":
            for key in [key for key in value if child(schema, key) is None]:
                yield (key,), _unknown(key, schema, whole)
        case "required":
            keys = schema["properties"]
            # What was probably meant by an unknown key is not missing too.
            meant = {key if child(schema, key) else _nearest(key, keys) for key in value}
            for key in [key for key in schema["required"] if key not in meant]:
                yield (key,), f"is missing; expected {expected(keys[key])}."
        case "properties":
            yield (), error.message
        case "minProperties":
            free = [key for key in schema.get("properties", ["a name"]) if key not in schema.get("required", [])]
            yield (), f"says too little; give it one of {', '.join(free)}."
        case "oneOf":
            ways = [" and ".join(way["required"]) for way in schema["oneOf"]]
            yield (), f"needs {', or '.join(ways)}: one of them, and no other."
        case "uniqueItems":
            for item in [item for item, times in Counter(map(repr, value)).items() if times > 1]:
                yield (), f"{cut(item)} stands twice in the list."
        case "maxLength":
            yield (), f"is {len(value):,} characters long; at most {schema['maxLength']} are allowed."
        case "enum" if isinstance(value, str):
            yield (), f"{show(value)} is not allowed{mean(value, schema['enum'])} Allowed: {', '.join(schema['enum'])}."
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            yield (), f"{value} is out of range; expected {expected(schema)}."
        case "minLength" | "minItems" | "pattern" as keyword:
            what = f"{show(value)} is not allowed" if keyword == "pattern" else "is empty"
            yield (), f"{what}; expected {expected(schema)}."


def _check_properties(validator: Any, properties: dict, value: Any, schema: dict) -> Iterator[ValidationError]:
    """Keyword `properties`, with two words of ours: `with`, and `needed`, of a key that goes with a word of another."""
    yield from Draft202012Validator.VALIDATORS["properties"](validator, properties, value, schema)
    if not isinstance(value, dict):
        return
    companions = [(key, *pair) for key, part in properties.items() for pair in part.get("with", {}).items()]
    for key, other, words in companions:
        # A misspelt word, and a misspelt key, is reported as such.
        is_word = value.get(other) in properties[other].get("enum", [value.get(other)])
        is_meant = key in value or any(_nearest(name, [key]) for name in value.keys() - properties.keys())
        if key in value and isinstance(value.get(other), str) and is_word and value[other] not in words:
            text = f"works with the {other} {' or '.join(words)} only, and the {other} here is {value[other]}."
            yield ValidationError(text, path=[key])
        elif properties[key].get("needed") and value.get(other) in words and not is_meant:
            yield ValidationError(f"is missing; expected {expected(properties[key])}.", path=[key])


def _check_uniqueness(validator: Any, is_asked: bool, value: Any, schema: dict) -> Iterator[ValidationError]:
    """Keyword `uniqueItems`: jsonschema compares each item with each, in minutes, where a list has several types."""
    if isinstance(value, list) and len(set(map(repr, value))) < len(value):
        yield ValidationError("stands twice")


# Unlike in JSON, 2000.0 is no integer here, true no number, and nan and inf are neither.
_TYPES = Draft202012Validator.TYPE_CHECKER.redefine_many(
    {
        "integer": lambda _, value: type(value) is int,
        "number": lambda _, value: type(value) in (int, float) and abs(value) < float("inf"),
    }
)
_KEYWORDS = {"properties": _check_properties, "uniqueItems": _check_uniqueness}
_Validator = extend(Draft202012Validator, _KEYWORDS, type_checker=_TYPES)


# Words ------------------------------------------------------------------------------------------------

# Of hundreds of keys elsewhere, one that shares half of the letters was hardly meant.
NEARLY_RIGHT = 0.8


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
        return _Validator(schema).is_valid(other)

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
