"""Slurm's compressed lists of nodes: `n[001-003,7],gpu[1-2]` is n001, n002, n003, n7, gpu1, gpu2."""

import re
from itertools import product
from math import prod

import polars as pl
from ttf.engine.errors import StudyError

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
    distinct = texts.rename("text").drop_nulls().value_counts(sort=False, name="rows").with_columns(_one_range(most))
    # Written out one by one, 300,000 of them take 13 s.
    is_simple = distinct["nodes"].is_not_null()
    in_all = _refuse_too_many(0, distinct.select((pl.col("rows") * pl.col("nodes")).sum()).item(), most_in_all)
    expanded, reasons, known = [], [], {}
    for text, rows in distinct.filter(~is_simple).select("text", "rows").iter_rows():
        try:
            # One object for each node's name, as a node stands in many lists.
            nodes = [known.setdefault(node, node) for node in expand(text, most)]
            reason = None
            in_all = _refuse_too_many(in_all, rows * len(nodes), most_in_all)
        except ValueError as error:
            nodes, reason = None, f"NodeList cannot be expanded: {error}"
        expanded.append(nodes)
        reasons.append(reason)
    others = pl.DataFrame(
        {"text": distinct.filter(~is_simple)["text"], "node_list": expanded, "node_list_reason": reasons},
        schema={"text": pl.String, "node_list": pl.List(pl.String), "node_list_reason": pl.String},
    )
    table = pl.concat([_expand_ranges(distinct.filter(is_simple)), others], how="diagonal")
    joined = texts.rename("text").to_frame().join(table, on="text", how="left", maintain_order="left")
    return joined.select("node_list", "node_list_reason")


def _refuse_too_many(in_all: int, more: int, most_in_all: int) -> int:
    """The sum. Raises StudyError where it is more than `most_in_all`."""
    if in_all + more > most_in_all:
        raise StudyError(
            f"NodeList: the records name more than {most_in_all:,} nodes in all, which does not fit into memory. "
            "Check that the column is what sacct printed, or study a shorter time at once."
        )
    return in_all + more


def _one_range(most: int) -> list[pl.Expr]:
    """Of texts such as n7 or n[001-003]: prefix, low, high, width and how many `nodes`; blank of any others."""
    name, text = r"^([^\[\],]+)", pl.col("text")
    low, high = (text.str.extract(name + r"\[(\d{1,18})-(\d{1,18})\]$", group) for group in (2, 3))
    size = high.cast(pl.Int64) - low.cast(pl.Int64) + 1
    nodes = pl.when(~text.str.contains(r"[\[\],]") & (text != "")).then(1).when(size.is_between(1, most)).then(size)
    width = low.str.len_chars()
    return [text.str.extract(name).alias("prefix"), low.alias("low"), width.alias("width"), nodes.alias("nodes")]


def _expand_ranges(texts: pl.DataFrame) -> pl.DataFrame:
    """text, node_list of texts with the columns of `_one_range`."""
    low = pl.col("low").cast(pl.Int64)
    number = pl.int_ranges(low.fill_null(0), low.fill_null(0) + pl.col("nodes"))
    digits = pl.col("number").cast(pl.String).str.zfill(pl.col("width"))
    each = texts.with_columns(number=number).explode("number")
    node = pl.when(pl.col("low").is_null()).then("prefix").otherwise(pl.format("{}{}", "prefix", digits))
    return each.group_by("text", maintain_order=True).agg(node_list=node)


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
