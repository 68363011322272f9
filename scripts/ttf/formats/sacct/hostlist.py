"""Slurm's compressed lists of nodes: `n[001-003,7],gpu[1-2]` is n001, n002, n003, n7, gpu1, gpu2."""

import re
from itertools import product
from math import prod

import polars as pl
from ttf.errors import StudyError

# Slurm itself refuses a longer range. A dump is untrusted: n[1-999999999] must not fill the memory.
MOST_NODES = 65_536
# Nodes of all lists together, so that many long lists do not either; some gigabytes.
MOST_NODES_IN_ALL = 50_000_000

_PART = re.compile(r"([^\[\],]+)|\[([^\[\]]*)\]|(,)")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


def expand(text: str, most: int = MOST_NODES) -> list[str]:
    """The nodes of a hostlist, in its order; a node named twice stands twice.

    Several bracket groups in one name give every combination, the last one fastest. Numbers keep the width of the
    lower end of their range. Raises ValueError for what is no hostlist, and where it has more than `most` nodes; their
    number is known before any is written out.
    """
    return [
        "".join(name)
        for word in _sized_words(text, most)
        for name in product(*(part if isinstance(part, list) else _numbers(part) for part in word))
    ]


def is_no_hostlist(texts: pl.Series) -> pl.Series:
    """Whether a text cannot be expanded; false where it is blank."""
    broken = []
    for text in texts.filter(texts.str.contains(r"[\[\],]")).unique():
        try:
            _sized_words(text, MOST_NODES)
        except ValueError:
            broken.append(text)
    return texts.is_in(broken).fill_null(False)


def _sized_words(text: str, most: int) -> list[list[list]]:
    """The words of a hostlist that has at most so many nodes, each as its parts."""
    if "[" not in text and "]" not in text:
        words = [[[name]] for name in text.split(",")]
        if not all(name for ((name,),) in words):
            raise ValueError("a node without a name")
    else:
        words = [_ranges(word) for word in _words(text)]
    if sum(_size(word) for word in words) > most:
        raise ValueError(f"more than {most:,} nodes")
    return words


def node_lists(texts: pl.Series, most: int = MOST_NODES, most_in_all: int = MOST_NODES_IN_ALL) -> pl.DataFrame:
    """The nodes of each hostlist: columns node_list (List[String]) and node_list_reason, in the order of `texts`.

    A blank text gives a blank list; so does one that cannot be expanded, and the reason says why. Each distinct text
    is expanded once. Raises StudyError where all the lists together have more than `most_in_all` nodes.
    """
    distinct = texts.drop_nulls().value_counts(sort=False, name="rows")
    expanded, reasons, in_all, known = [], [], 0, {}
    for text, rows in distinct.iter_rows():
        try:
            # One object for each node's name, as a node stands in many lists.
            nodes = [known.setdefault(node, node) for node in expand(text, most)]
            reason = None
            in_all += rows * len(nodes)
        except ValueError as error:
            nodes, reason = None, f"NodeList cannot be expanded: {error}"
        if in_all > most_in_all:
            raise StudyError(
                f"NodeList: the records name more than {most_in_all:,} nodes in all, which does not fit into memory. "
                "Check that the column is what sacct printed, or study a shorter time at once."
            )
        expanded.append(nodes)
        reasons.append(reason)
    table = pl.DataFrame(
        [
            distinct[texts.name].alias("text"),
            pl.Series("node_list", expanded, dtype=pl.List(pl.String)),
            pl.Series("node_list_reason", reasons, dtype=pl.String),
        ]
    )
    joined = texts.rename("text").to_frame().join(table, on="text", how="left", maintain_order="left")
    return joined.select("node_list", "node_list_reason")


def _words(text: str) -> list[list[tuple[str, str]]]:
    """A hostlist cut at its outer commas; each word as (literal, "") and ("", contents of brackets)."""
    words, word, end = [], [], 0
    for part in _PART.finditer(text):
        if part.start() != end:
            raise ValueError("brackets do not match")
        end = part.end()
        literal, brackets, comma = part.groups()
        if comma:
            words.append(word)
            word = []
        else:
            word.append((literal or "", brackets or ""))
    words.append(word)
    if end != len(text):
        raise ValueError("brackets do not match")
    if not all(words):
        raise ValueError("a node without a name")
    return words


def _ranges(word: list[tuple[str, str]]) -> list[list]:
    """Each part of a word as a list of one literal, or as a tuple of ranges (lowest, highest, width)."""
    parts = []
    for literal, brackets in word:
        if literal:
            parts.append([literal])
            continue
        ranges = []
        for text in brackets.split(","):
            match = _RANGE.fullmatch(text)
            if not match:
                raise ValueError("brackets hold something else than ranges of numbers")
            low, high = match[1], match[2] or match[1]
            if int(high) < int(low):
                raise ValueError("a range runs backwards")
            ranges.append((int(low), int(high), len(low)))
        parts.append(tuple(ranges))
    return parts


def _size(word: list) -> int:
    return prod(1 if isinstance(part, list) else sum(high - low + 1 for low, high, _ in part) for part in word)


def _numbers(ranges: tuple[tuple[int, int, int], ...]) -> list[str]:
    return [f"{number:0{width}d}" for low, high, width in ranges for number in range(low, high + 1)]
