"""YAML read with care: every problem with its line and column, and nothing in a file can take long or fill the memory.

Aliases let a text of some lines stand for 10^9 values, brackets can be nested deeper than any parser's stack, and a
number may have a million digits. What a file stands for is measured before it is built.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from study.given import CONFIGURATION_MB, DOCUMENT_MB, contents
from study.memory import Memory
from study.messages import ConfigError, found, key_text, one_line, show

KeyPath = tuple[str | int, ...]

# What a document may stand for, its aliases written out: the largest shipped one has 35,000 values, 9 deep.
MOST_VALUES, DEEPEST, LONGEST_NUMBER = 300_000, 50, 400
# Above this, in characters, the parser in Python, which explains errors better, takes seconds.
_LARGE = 100_000
# Above this, in bytes, to parse a file anew at each start is a part of the start.
_MUCH = 50_000
_DOCUMENTS = Memory("documents", __file__)
_MERGE = "tag:yaml.org,2002:merge"
_SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp")}
_NUMBERS = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp")}
_UNDERSTOOD = _SCALARS | {f"tag:yaml.org,2002:{name}" for name in ("map", "seq")}
_HINT = "look at the indentation, colons, quotes and brackets on this line and the one before"


class Document(dict):
    """A mapping as it was read, and where in the file each key of it stands.

    tree: gives the tree that it was built from.
    """

    def __init__(self, content: Mapping, tree: Callable[[], yaml.Node | None] = lambda: None):
        super().__init__(content)
        self.tree = tree

    @cached_property
    def _places(self) -> dict[KeyPath, tuple[int, int]]:
        return dict(_places(tree)) if (tree := self.tree()) else {}

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
    parsed = cache(lambda: _parsed(text, label, not for_snakemake))
    if len(content) > _MUCH and not for_snakemake:
        # What was remembered comes without its tree, which only a message needs.
        value = _DOCUMENTS.of(content, lambda: parsed()[0], lambda value: isinstance(value, dict))
    else:
        value, _ = parsed()
    if not isinstance(value, dict):
        what = "the file is empty" if value is None else f"found {found(value)}"
        raise ConfigError(f"{label}: {what}; expected keys with values, for example study: [sample].")
    return Document(value, lambda: parsed()[1])


def parse_yaml(text: str, label: str) -> Any:
    """The content of a YAML text. Raises ConfigError, a line a problem."""
    return _parsed(text, label)[0]


def _parsed(text: str, label: str, fast: bool = True) -> tuple[Any, yaml.Node | None]:
    """(the content, the tree that it was built from). PyYAML by itself lets the last of two equal keys win."""
    try:
        loader, node = _composed(text, fast)
        if node is None:
            return None, None
        if problems := _Walk(loader).problems_of(node):
            raise ConfigError("\n".join(f"{label}: {problem}" for problem in problems))
        return loader.construct_document(node), node
    except _Refused as refused:
        raise ConfigError(f"{label}: {refused}") from None
    except yaml.MarkedYAMLError as error:
        # PyYAML's words are a parser's; the hint is for a person.
        hint = "indent with spaces, not tabs" if "'\\t'" in str(error.problem) else _HINT
        where = _mark(error.problem_mark or error.context_mark)
        raise ConfigError(f"{label}: {where}not valid YAML ({one_line(error.problem)}); {hint}.") from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise ConfigError(f"{label}: {at((line, column))}a character that YAML does not allow.") from None
    except RecursionError:
        raise ConfigError(f"{label}: nested too deeply; at most {DEEPEST} levels are read.") from None
    except UnicodeEncodeError:
        raise ConfigError(f"{label}: not UTF-8 text.") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{label}: not valid YAML ({one_line(error)}).") from None


def _composed(text: str, fast: bool) -> tuple[Any, yaml.Node | None]:
    """(loader, its one document). libyaml takes a seventh of the time; the parser in Python explains errors better, and
    refuses some tabs that libyaml lets pass."""
    if yaml.__with_libyaml__:
        try:
            _check_depth(yaml.parse(text, yaml.CSafeLoader))
            if fast:
                loader = yaml.CSafeLoader(text)
                return loader, loader.get_single_node()
        except yaml.YAMLError:
            if fast and len(text) > _LARGE:
                raise
    loader = yaml.SafeLoader(text)
    return loader, loader.get_single_node()


def _check_depth(events: Iterator[yaml.Event]) -> None:
    """Raises _Refused where brackets or indentation are nested too deeply: building them would break the stack."""
    depth = values = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        values += isinstance(event, yaml.NodeEvent)
        if depth > DEEPEST:
            raise _Refused(f"{_mark(event.start_mark)}nested too deeply; at most {DEEPEST} levels are read.")
        if values > MOST_VALUES:
            raise _Refused(f"{_mark(event.start_mark)}too much; at most {MOST_VALUES:,} values are read.")


class _Refused(Exception):
    """Of a file that cannot be read any further."""


class _Walk:
    """Goes once through a tree, whatever stands for what: what each part stands for, and what is wrong with it.

    Makes every plain key a text (2020, no).
    """

    def __init__(self, loader: Any):
        self._loader, self._problems = loader, []
        # Part of the tree -> (values, levels) that it stands for, aliases written out; nothing while it is looked at.
        self._seen: dict[int, tuple[int, int] | None] = {}

    def problems_of(self, node: yaml.Node) -> list[str]:
        """What is wrong. Raises _Refused for a tree that stands for too much."""
        self._size(node)
        return self._problems

    def _size(self, node: yaml.Node) -> tuple[int, int]:
        if id(node) in self._seen:
            if (size := self._seen[id(node)]) is None:
                raise _Refused(f"{_mark(node.start_mark)}the value holds itself by an alias.")
            return size
        self._seen[id(node)] = None
        if isinstance(node, yaml.ScalarNode):
            self._check_scalar(node)
        elif node.tag not in _UNDERSTOOD:
            self._wrong(node, _tag(node))
        if isinstance(node, yaml.MappingNode):
            self._check_keys(node)
        inner = [self._size(part) for part in _parts(node)]
        values, levels = 1 + sum(size for size, _ in inner), 1 + max((deep for _, deep in inner), default=0)
        if values > MOST_VALUES or levels > DEEPEST:
            much = f"more than {MOST_VALUES:,} values" if values > MOST_VALUES else f"more than {DEEPEST} levels"
            raise _Refused(f"{_mark(node.start_mark)}with its aliases written out this is {much}. Write less.")
        self._seen[id(node)] = values, levels
        return values, levels

    def _wrong(self, node: yaml.Node, text: str) -> None:
        self._problems.append(f"{_mark(node.start_mark)}{text}")

    def _check_keys(self, node: yaml.MappingNode) -> None:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                key.tag = "tag:yaml.org,2002:str"
                if key.value in lines:
                    self._wrong(key, f"the key {key_text(key.value)} stands twice (first in line {lines[key.value]}).")
                lines.setdefault(key.value, key.start_mark.line + 1)

    def _check_scalar(self, node: yaml.ScalarNode) -> None:
        if node.tag == _MERGE:
            return
        if node.tag not in _SCALARS:
            self._wrong(node, _tag(node))
        elif node.tag in _NUMBERS and len(node.value) > LONGEST_NUMBER:
            self._wrong(node, f"a number of {len(node.value):,} characters; put it in quotes if it is a text.")
        else:
            try:
                self._loader.construct_object(node)
            except (ValueError, KeyError, AttributeError, OverflowError) as error:  # such as 2020-13-45 or !!bool x
                why = f" ({one_line(error)})" if isinstance(error, ValueError) else ""
                what = node.tag.rpartition(":")[2].replace("timestamp", "date")
                self._wrong(node, f"{show(node.value)} is no {what}{why}; put it in quotes if it is a text.")


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _tag(node: yaml.Node) -> str:
    name = node.tag.replace("tag:yaml.org,2002:", "!!")
    return f"{show(name).strip(chr(39))} means nothing here; leave it out, or put the text in quotes."


def _place(mark: yaml.Mark) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _mark(mark: yaml.Mark | None) -> str:
    return at(_place(mark)) if mark else ""


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
