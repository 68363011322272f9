"""YAML read with care: every problem with its line and column, and nothing in a file can take long or fill the memory.

Aliases let a text of some lines stand for 10^9 values, brackets can be nested deeper than any parser's stack, and a
number may have a million digits. What a file stands for is measured before it is built.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from study.messages import ConfigError, found, key_text, one_line, show
from study.named_files import CONFIGURATION_MB, DOCUMENT_MB, contents

KeyPath = tuple[str | int, ...]

# What a document may stand for, its aliases written out: the largest shipped one has 35,000 values, 9 deep.
MOST_VALUES, DEEPEST, LONGEST_NUMBER = 300_000, 50, 400
# Above this, in characters, the parser in Python, which explains errors better, takes seconds; libyaml a seventh of it.
_LARGE = 100_000
_FAST = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_TAG = "tag:yaml.org,2002:"
_PLAIN = {f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "map", "seq")}
_HINT = "look at the indentation, colons, quotes and brackets on this line and the one before"


class Document(dict):
    """A mapping as it was read, and where in the file each key of it stands. tree: what it was built from."""

    def __init__(self, content: Mapping, tree: yaml.Node | None = None):
        super().__init__(content)
        self.tree = tree

    @cached_property
    def _places(self) -> dict[KeyPath, tuple[int, int]]:
        return dict(_places(self.tree)) if self.tree else {}

    def place(self, path: KeyPath) -> tuple[int, int] | None:
        """(line, column), from 1, of a key, or of the nearest thing around it where the key is missing; None where the
        mapping is of no file."""
        ends = range(len(path), -1, -1)
        return next((self._places[path[:end]] for end in ends if path[:end] in self._places), None)


def at(place: tuple[int, int] | None) -> str:
    """A place in a file, as it stands in a message."""
    return f"line {place[0]}, column {place[1]}: " if place else ""


def load_yaml(path: str | Path, label: str | None = None, for_snakemake: bool = False) -> Document:
    """The mapping in a YAML file. `label` names the file in messages, `path` if there is none.

    for_snakemake: it reads the file too, with the slow and strict parser in Python.
    Raises ConfigError for a file that cannot be read, is too large, or holds anything else.
    """
    label = str(path) if label is None else label
    content = contents(path, label, CONFIGURATION_MB if for_snakemake else DOCUMENT_MB)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{label}: line {line}: not UTF-8 text; save the file as UTF-8.") from None
    value, tree = _parse(text, label, fast=not for_snakemake)
    if not isinstance(value, dict):
        what = "the file is empty" if value is None else f"found {found(value)}"
        raise ConfigError(f"{label}: {what}; expected keys with values, for example study: [sample].")
    return Document(value, tree)


def parse_yaml(text: str, label: str) -> Any:
    """The content of a YAML text. Raises ConfigError, a line a problem."""
    return _parse(text, label)[0]


def _parse(text: str, label: str, fast: bool = True) -> tuple[Any, yaml.Node | None]:
    """(the content, the tree that it was built from). PyYAML by itself lets the last of two equal keys win."""
    try:
        try:
            _check_size(yaml.parse(text, _FAST))
        except yaml.YAMLError:
            fast = len(text) > _LARGE
        loader = (_FAST if fast else yaml.SafeLoader)(text)
        if (node := loader.get_single_node()) is None:
            return None, None
        if problems := list(_problems(node, loader, set())):
            raise ConfigError("\n".join(f"{label}: {problem}" for problem in problems))
        return loader.construct_document(node), node
    except _Refused as refused:
        raise ConfigError(f"{label}: {refused}") from None
    except yaml.MarkedYAMLError as error:
        # PyYAML's words are a parser's; the hint is for a person.
        hint = "indent with spaces, not tabs" if "'\\t'" in str(error.problem) else _HINT
        where = at(_place(error.problem_mark or error.context_mark))
        raise ConfigError(f"{label}: {where}not valid YAML ({one_line(error.problem)}); {hint}.") from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise ConfigError(f"{label}: {at((line, column))}a character that YAML does not allow.") from None
    except RecursionError:
        raise ConfigError(f"{label}: nested too deeply; at most {DEEPEST} levels are read.") from None
    except UnicodeEncodeError:
        raise ConfigError(f"{label}: not UTF-8 text.") from None


class _Refused(Exception):
    """Of a file that stands for too much."""

    def __init__(self, mark: yaml.Mark, text: str):
        super().__init__(f"{at(_place(mark))}{text}")


def _check_size(events: Iterable[yaml.Event]) -> None:
    """Raises _Refused for a text whose tree would break the stack, or that stands for too much once its aliases are
    written out."""
    sizes: dict[str, tuple[int, int] | None] = {}  # of each anchor: values and levels, none while it is read
    around: list[tuple[str | None, int, int]] = []  # of each mapping or list around: its anchor, and the same
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            sizes[event.anchor] = None
            around.append((event.anchor, 1, 1))
            size = 0, 0
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, *size = around.pop()
            sizes[anchor] = size
        elif isinstance(event, yaml.AliasEvent):
            if (size := sizes.get(event.anchor, (1, 1))) is None:
                raise _Refused(event.start_mark, "the value holds itself by an alias.")
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor] = size = 1, 1
        else:
            continue
        if around:
            anchor, values, levels = around[-1]
            around[-1] = anchor, values + size[0], max(levels, size[1] + 1)
            if len(around) + size[1] > DEEPEST:
                raise _Refused(event.start_mark, f"nested too deeply; at most {DEEPEST} levels are read.")
            if values + size[0] > MOST_VALUES:
                raise _Refused(
                    event.start_mark, f"too much; at most {MOST_VALUES:,} values are read, aliases written out."
                )


def _problems(node: yaml.Node, loader: Any, seen: set[int]) -> Iterator[str]:
    """What is wrong in a tree, in each part once. Makes every plain key a text (2020, no)."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        yield from _repeated_keys(node)
    if text := _scalar_problem(node, loader) if isinstance(node, yaml.ScalarNode) else _tag_problem(node):
        yield f"{at(_place(node.start_mark))}{text}"
    for part in node.value if isinstance(node, yaml.CollectionNode) else ():
        for inner in part if isinstance(part, tuple) else [part]:
            yield from _problems(inner, loader, seen)


def _repeated_keys(node: yaml.MappingNode) -> Iterator[str]:
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
            key.tag = f"{_TAG}str"
            if key.value in lines:
                first = f"(first in line {lines[key.value]})"
                yield f"{at(_place(key.start_mark))}the key {key_text(key.value)} stands twice {first}."
            lines.setdefault(key.value, key.start_mark.line + 1)


def _tag_problem(node: yaml.Node) -> str:
    tag = show(node.tag.replace(_TAG, "!!")).strip("'")
    return "" if node.tag in _PLAIN else f"{tag} means nothing here; leave it out, or put the text in quotes."


def _scalar_problem(node: yaml.ScalarNode, loader: Any) -> str:
    kind = node.tag.removeprefix(_TAG)
    if kind in ("int", "float", "timestamp") and len(node.value) > LONGEST_NUMBER:
        return f"a number of {len(node.value):,} characters; put it in quotes if it is a text."
    if kind == "merge" or (text := _tag_problem(node)):
        return "" if kind == "merge" else text
    try:
        loader.construct_object(node)
    except (ValueError, KeyError, AttributeError, OverflowError) as error:  # such as 2020-13-45 or !!bool x
        why = f" ({one_line(error)})" if isinstance(error, ValueError) else ""
        return f"{show(node.value)} is no {kind.replace('timestamp', 'date')}{why}; put it in quotes if it is a text."
    return ""


def _place(mark: yaml.Mark | None) -> tuple[int, int] | None:
    return (mark.line + 1, mark.column + 1) if mark else None


def _places(node: yaml.Node, above: KeyPath = ()) -> Iterator[tuple[KeyPath, tuple[int, int]]]:
    """Where each key and item of a YAML file stands; what is merged in (by now a part of it), where it was written."""
    yield above, _place(node.start_mark)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            path = (*above, key.value)
            yield from _places(value, path)
            yield path, _place(key.start_mark)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _places(item, (*above, number))
