"""Slurm's compressed lists of nodes."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.engine.errors import StudyError
from ttf.formats.sacct.hostlist import expand, node_lists


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("n1", ["n1"]),
        ("n1,gpu-a.cluster", ["n1", "gpu-a.cluster"]),
        ("n[001-003,7],gpu[1-2]", ["n001", "n002", "n003", "n7", "gpu1", "gpu2"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[09-11]", ["n09", "n10", "n11"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        (
            "rack[1,3]-node[08-09]-x,login",
            ["rack1-node08-x", "rack1-node09-x", "rack3-node08-x", "rack3-node09-x", "login"],
        ),
        ("[1-2]", ["1", "2"]),
        ("n1,n1", ["n1", "n1"]),
    ],
)
def test_expansion(text, nodes):
    assert expand(text) == nodes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[1-3", "brackets"),
        ("n1-3]", "brackets"),
        ("n[[1-2]]", "brackets"),
        ("n[a-c]", "ranges of numbers"),
        ("n[1-2-3]", "ranges of numbers"),
        ("n[]", "ranges of numbers"),
        ("n[3-1]", "backwards"),
        ("n1,,n2", "without a name"),
        (",n[1-2]", "without a name"),
        ("n[1-2],", "without a name"),
        ("n[1-999999999]", "more than"),
        ("n[1-60000][1-60000]", "more than"),
        ("n[1-99999999999999999999]", "ranges of numbers"),
        ("n[" + "1-60000," * 50 + "1]", "more than"),
    ],
)
def test_an_invalid_or_too_long_hostlist_is_an_error(text, message):
    with pytest.raises(ValueError, match=message):
        expand(text)


def test_lists_of_a_column():
    texts = pl.Series("node_list", ["n[1-2]", None, "n7", "n[1-2]", "n[1-999999999]", "n[", "n[01-02]"])
    lists = node_lists(texts)
    assert lists["node_list"].to_list() == [["n1", "n2"], None, ["n7"], ["n1", "n2"], None, None, ["n01", "n02"]]
    reasons = [f"NodeList cannot be expanded: {why}" for why in ("more than 65,536 nodes", "brackets do not match")]
    assert lists["node_list_reason"].to_list() == [*[None] * 4, *reasons, None]
    assert node_lists(texts.clear()).schema == lists.schema
    assert node_lists(pl.Series("node_list", [None], dtype=pl.String))["node_list"].to_list() == [None]


def test_the_total_number_of_nodes_is_limited():
    with pytest.raises(StudyError, match="more than 100 nodes in all"):
        node_lists(pl.Series("node_list", ["n[1-30]"] * 4), max_total=100)
    assert node_lists(pl.Series("node_list", ["n[1-25]"] * 4), max_total=100).height == 4


@given(st.text(alphabet="n01239[]-,", max_size=30))
def test_any_text_gives_nodes_or_a_reason(text):
    try:
        nodes = expand(text, 1000)
    except ValueError:
        return
    assert nodes
    assert all(nodes)
    assert len(nodes) <= 1000


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=30), st.integers(1, 4))
def test_expansion_restores_every_number(numbers, width):
    text = "n[" + ",".join(f"{number:0{width}d}" for number in numbers) + "]"
    assert expand(text) == [f"n{number:0{width}d}" for number in numbers]
