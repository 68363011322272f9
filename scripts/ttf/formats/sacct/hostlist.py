"""Expand Slurm's compressed lists of nodes: `n[001-003,7],gpu[1-2]` is n001, n002, n003, n7, gpu1, gpu2."""

import re
from itertools import product
from math import prod

import polars as pl
from ttf.engine.errors import StudyError

# Slurm itself refuses a longer range. A dump is untrusted: n[1-999999999] must not fill the memory.
MAX_NODES = 65_536
# Limit of the nodes of all lists together: some gigabytes.
MAX_TOTAL_NODES = 50_000_000

_BRACKETS = r"\[([^\[\]]*)\]"
_PART = re.compile(rf"([^\[\],]+)|{_BRACKETS}")
_WORD = re.compile(rf"(?:{_PART.pattern})+")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
# Low, high and width of the numbers.
Range = tuple[int, int, int]
# The parts of a name: a literal, or the ranges of a bracket group.
Word = list[str | list[Range]]


def expand(text: str, max_nodes: int = MAX_NODES) -> list[str]:
    """Return the nodes of a hostlist, in its order and with repetitions.

    Several bracket groups in one name give all combinations; the last group varies fastest. Numbers keep the width of
    the lower bound of their range. Raises ValueError if the text is no hostlist or has more than `max_nodes` nodes;
    nodes are counted before they are expanded.
    """
    return [
        "".join(name)
        for word in _parse_words(text, max_nodes)
        for name in product(*([part] if isinstance(part, str) else _expand_numbers(part) for part in word))
    ]


def has_invalid_hostlist(texts: pl.Series) -> pl.Series:
    """Return whether each text cannot be expanded; false for a blank."""
    invalid = []
    for text in texts.filter(texts.str.contains(r"[\[\],]")).unique():
        try:
            _parse_words(text, MAX_NODES)
        except ValueError:
            invalid.append(text)
    return texts.is_in(invalid).fill_null(False)


def _parse_words(text: str, max_nodes: int) -> list[Word]:
    """Parse a hostlist of at most `max_nodes` nodes into words."""
    outside = re.sub(_BRACKETS, "", text)
    if "[" in outside or "]" in outside:
        raise ValueError("brackets do not match")
    names = [match[0] for match in _WORD.finditer(text)]
    if len(names) <= outside.count(","):
        raise ValueError("a node without a name")
    words = [_parse_word(name) for name in names]
    if sum(_count_names(word) for word in words) > max_nodes:
        raise ValueError(f"more than {max_nodes:,} nodes")
    return words


def node_lists(texts: pl.Series, max_total: int = MAX_TOTAL_NODES) -> pl.DataFrame:
    """Expand each hostlist: columns node_list (List[String]) and node_list_reason, in the order of `texts`.

    A blank text gives a blank list. An invalid text gives a blank list and a reason. Each distinct text is expanded
    once. Raises StudyError if all lists together have more than `max_total` nodes.
    """
    distinct = texts.rename("text").drop_nulls().value_counts(sort=False, name="rows").with_columns(_split_range())
    # Expanding 300,000 of them one by one takes 13 s.
    is_simple = distinct["nodes"].is_not_null()
    total = _add_within_limit(0, distinct.select((pl.col("rows") * pl.col("nodes")).sum()).item(), max_total)
    expanded, reasons = [], []
    interned: dict[str, str] = {}
    for text, rows in distinct.filter(~is_simple).select("text", "rows").iter_rows():
        try:
            # Share one object per name, because a node is in many lists.
            nodes = [interned.setdefault(node, node) for node in expand(text)]
            reason = None
            total = _add_within_limit(total, rows * len(nodes), max_total)
        except ValueError as error:
            nodes, reason = None, f"NodeList cannot be expanded: {error}"
        expanded.append(nodes)
        reasons.append(reason)
    other_lists = pl.DataFrame(
        {"text": distinct.filter(~is_simple)["text"], "node_list": expanded, "node_list_reason": reasons},
        schema={"text": pl.String, "node_list": pl.List(pl.String), "node_list_reason": pl.String},
    )
    table = pl.concat([_expand_ranges(distinct.filter(is_simple)), other_lists], how="diagonal")
    frame = texts.rename("text").to_frame().join(table, on="text", how="left", maintain_order="left")
    return frame.select("node_list", "node_list_reason")


def _add_within_limit(total: int, added: int, max_total: int) -> int:
    if total + added > max_total:
        raise StudyError(
            f"NodeList: the records name more than {max_total:,} nodes in all, which does not fit into memory. "
            "Check that the column is what sacct printed, or study a shorter period."
        )
    return total + added


def _split_range() -> list[pl.Expr]:
    """Split texts such as n7 or n[001-003] into prefix, low, width and number of `nodes`; blank for other texts."""
    name, text = r"^([^\[\],]+)", pl.col("text")
    low, high = (text.str.extract(name + r"\[(\d{1,18})-(\d{1,18})\]$", group) for group in (2, 3))
    size = high.cast(pl.Int64) - low.cast(pl.Int64) + 1
    nodes = (
        pl.when(~text.str.contains(r"[\[\],]") & (text != "")).then(1).when(size.is_between(1, MAX_NODES)).then(size)
    )
    width = low.str.len_chars()
    return [text.str.extract(name).alias("prefix"), low.alias("low"), width.alias("width"), nodes.alias("nodes")]


def _expand_ranges(texts: pl.DataFrame) -> pl.DataFrame:
    """Return text and node_list of texts with the columns of _split_range."""
    low = pl.col("low").cast(pl.Int64)
    number = pl.int_ranges(low.fill_null(0), low.fill_null(0) + pl.col("nodes"))
    digits = pl.col("number").cast(pl.String).str.zfill(pl.col("width"))
    expanded_rows = texts.with_columns(number=number).explode("number")
    node = pl.when(pl.col("low").is_null()).then("prefix").otherwise(pl.format("{}{}", "prefix", digits))
    return expanded_rows.group_by("text", maintain_order=True).agg(node_list=node)


def _parse_word(text: str) -> Word:
    return [literal or _parse_ranges(ranges) for literal, ranges in _PART.findall(text)]


def _parse_ranges(text: str) -> list[Range]:
    """Parse the contents of brackets."""
    ranges = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if not match:
            raise ValueError("brackets contain something other than ranges of numbers")
        low, high = match[1], match[2] or match[1]
        if int(high) < int(low):
            raise ValueError("a range runs backwards")
        ranges.append((int(low), int(high), len(low)))
    return ranges


def _count_names(word: Word) -> int:
    return prod(1 if isinstance(part, str) else sum(high - low + 1 for low, high, _ in part) for part in word)


def _expand_numbers(ranges: list[Range]) -> list[str]:
    return [f"{number:0{width}d}" for low, high, width in ranges for number in range(low, high + 1)]
