"""Safe YAML: every problem with its line and column, and limits on time and memory.

Aliases let a text of some lines stand for 10^9 values, brackets can be nested deeper than any parser's stack, and a
number may have a million digits. The size of a document is measured before it is built.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from ttf.study.configuration.messages import ConfigError, describe_value, format_key, join_lines, show
from ttf.study.configuration.named_files import CONFIGURATION_MB, DOCUMENT_MB, read_contents

KeyPath = tuple[str | int, ...]

# Limits of a document with its aliases expanded. The largest shipped document has 35,000 values, 9 levels deep.
MOST_VALUES, DEEPEST, LONGEST_NUMBER = 300_000, 50, 400
# Characters. The parser in Python explains errors better, but takes seconds for a larger text; libyaml a seventh.
_LARGE = 100_000
FAST_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "map", "seq")}
_SYNTAX_HINT = "look at the indentation, colons, quotes and brackets on this line and the one before"


class Document(dict):
    """A mapping and the position of each key in its file. tree: the YAML nodes that it was built from."""

    def __init__(self, content: Mapping, tree: yaml.Node | None = None) -> None:
        super().__init__(content)
        self.tree = tree

    @cached_property
    def _positions(self) -> dict[KeyPath, tuple[int, int]]:
        return dict(_find_positions(self.tree)) if self.tree else {}

    def find_position(self, path: KeyPath) -> tuple[int, int] | None:
        """Return (line, column), from 1, of a key or its closest existing parent; None without a file."""
        ends = range(len(path), -1, -1)
        return next((self._positions[path[:end]] for end in ends if path[:end] in self._positions), None)


def format_position(position: tuple[int, int] | None) -> str:
    return f"line {position[0]}, column {position[1]}: " if position else ""


def load_yaml(path: str | Path, label: str | None = None, for_snakemake: bool = False) -> Document:
    """Return the mapping in a YAML file.

    label: the file's name in messages, by default `path`. for_snakemake: Snakemake reads the file too, with the slow
    and strict parser in Python. Raises ConfigError for a file that is unreadable, too large, or no mapping.
    """
    label = str(path) if label is None else label
    content = read_contents(path, label, CONFIGURATION_MB if for_snakemake else DOCUMENT_MB)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{label}: line {line}: not UTF-8 text; save the file as UTF-8.") from None
    value, tree = _parse(text, label, fast=not for_snakemake)
    if not isinstance(value, dict):
        reason = "the file is empty" if value is None else f"found {describe_value(value)}"
        raise ConfigError(f"{label}: {reason}; expected keys with values, for example study: [sample].")
    return Document(value, tree)


def parse_yaml(text: str, label: str) -> Any:
    """Return the content of a YAML text. Raises ConfigError, one problem per line."""
    return _parse(text, label)[0]


def _parse(text: str, label: str, fast: bool = True) -> tuple[Any, yaml.Node | None]:
    """Return (content, tree). PyYAML itself accepts a repeated key."""
    try:
        try:
            _check_size(yaml.parse(text, FAST_LOADER))
        except yaml.YAMLError:
            fast = len(text) > _LARGE
        loader = (FAST_LOADER if fast else yaml.SafeLoader)(text)
        if (node := loader.get_single_node()) is None:
            return None, None
        if problems := list(_find_problems(node, loader, set())):
            raise ConfigError("\n".join(f"{label}: {problem}" for problem in problems))
        return loader.construct_document(node), node
    except _Refused as refused:
        raise ConfigError(f"{label}: {refused}") from None
    except yaml.MarkedYAMLError as error:
        # PyYAML's message is written for parsers, so a hint for the user is added.
        hint = "indent with spaces, not tabs" if "'\\t'" in str(error.problem) else _SYNTAX_HINT
        mark = error.problem_mark or error.context_mark
        position = format_position(mark and _to_position(mark))
        raise ConfigError(f"{label}: {position}not valid YAML ({join_lines(error.problem)}); {hint}.") from None
    except yaml.reader.ReaderError as error:
        text_before = text[: error.position]
        line, column = text_before.count("\n") + 1, len(text_before) - text_before.rfind("\n")
        raise ConfigError(f"{label}: {format_position((line, column))}a character that YAML does not allow.") from None
    except RecursionError:
        raise ConfigError(f"{label}: nested too deeply; at most {DEEPEST} levels are read.") from None
    except UnicodeEncodeError:
        raise ConfigError(f"{label}: not UTF-8 text.") from None


class _Refused(Exception):
    """Raised for a document that stands for too much."""

    def __init__(self, mark: yaml.Mark, text: str) -> None:
        super().__init__(f"{format_position(_to_position(mark))}{text}")


def _check_size(events: Iterable[yaml.Event]) -> None:
    """Raise _Refused for a tree that breaks the stack, or that is too large with its aliases expanded."""
    sizes: dict[str | None, tuple[int, int] | None] = {}  # anchor -> values and levels, None while it is read
    open_collections: list[tuple[str | None, int, int]] = []  # anchor, values and levels of each open mapping or list
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            sizes[event.anchor] = None
            open_collections.append((event.anchor, 1, 1))
            size = 0, 0
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, values, levels = open_collections.pop()
            sizes[anchor] = size = values, levels
        elif isinstance(event, yaml.AliasEvent):
            alias_size = sizes.get(event.anchor, (1, 1))
            if alias_size is None:
                raise _Refused(event.start_mark, "the value contains itself by an alias.")
            size = alias_size
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor] = size = 1, 1
        else:
            continue
        if open_collections:
            anchor, values, levels = open_collections[-1]
            open_collections[-1] = anchor, values + size[0], max(levels, size[1] + 1)
            if len(open_collections) + size[1] > DEEPEST:
                raise _Refused(event.start_mark, f"nested too deeply; at most {DEEPEST} levels are read.")
            if values + size[0] > MOST_VALUES:
                raise _Refused(
                    event.start_mark, f"too large; at most {MOST_VALUES:,} values are read, with aliases expanded."
                )


def _find_problems(node: yaml.Node, loader: Any, seen: set[int]) -> Iterator[str]:
    """Yield the problems in a tree, each part once; turn every plain key into text (2020, no)."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        yield from _find_repeated_keys(node)
    if text := _find_scalar_problem(node, loader) if isinstance(node, yaml.ScalarNode) else _find_tag_problem(node):
        yield f"{format_position(_to_position(node.start_mark))}{text}"
    for part in node.value if isinstance(node, yaml.CollectionNode) else ():
        for inner in part if isinstance(part, tuple) else [part]:
            yield from _find_problems(inner, loader, seen)


def _find_repeated_keys(node: yaml.MappingNode) -> Iterator[str]:
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
            key.tag = f"{_TAG}str"
            if key.value in lines:
                first = f"(first in line {lines[key.value]})"
                position = format_position(_to_position(key.start_mark))
                yield f"{position}the key {format_key(key.value)} appears twice {first}."
            lines.setdefault(key.value, key.start_mark.line + 1)


def _find_tag_problem(node: yaml.Node) -> str:
    tag = show(node.tag.replace(_TAG, "!!")).strip("'")
    return "" if node.tag in _PLAIN_TAGS else f"{tag} is an unknown tag; remove it, or put the text in quotes."


def _find_scalar_problem(node: yaml.ScalarNode, loader: Any) -> str:
    type_name = node.tag.removeprefix(_TAG)
    if type_name in ("int", "float", "timestamp") and len(node.value) > LONGEST_NUMBER:
        return f"a number of {len(node.value):,} characters; put it in quotes if it is a text."
    if type_name == "merge" or (text := _find_tag_problem(node)):
        return "" if type_name == "merge" else text
    try:
        loader.construct_object(node)
    except (ValueError, KeyError, AttributeError, OverflowError) as error:  # such as 2020-13-45 or !!bool x
        cause = f" ({join_lines(error)})" if isinstance(error, ValueError) else ""
        name = type_name.replace("timestamp", "date")
        return f"{show(node.value)} is no {name}{cause}; put it in quotes if it is a text."
    return ""


def _to_position(mark: yaml.Mark) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _find_positions(node: yaml.Node, parent: KeyPath = ()) -> Iterator[tuple[KeyPath, tuple[int, int]]]:
    """Yield the position of each key and item; merged content has the position where it was written."""
    yield parent, _to_position(node.start_mark)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            path = (*parent, key.value)
            yield from _find_positions(value, path)
            yield path, _to_position(key.start_mark)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _find_positions(item, (*parent, number))
