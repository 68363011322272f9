"""Slurm accounting without node events or health events: too few failures name a node; test_afternoons.py has both."""

import html
import re

import whole_study
from simulated_cluster import simulate


def test_without_power_no_node_is_said_to_be_well(tmp_path):
    """Of 200 nodes three are bad."""
    (tmp_path / "raw").mkdir()
    simulate(seed=1, bad=3).dump.write_csv(tmp_path / "raw/dump.txt", separator="|")
    registry = {"mine": {"format": "sacct", "folder": "raw"}}
    result = whole_study.run({"study": ["mine"], "registry": registry}, tmp_path)
    assert (result.job, result.refused, result.crash) == (None, None, None)
    assert (tmp_path / "results/mine/drains/exclude.txt").read_text() == ""
    page = (tmp_path / "results/studies/mine/report/index.html").read_text(encoding="utf-8")
    flat = " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).replace("\u00a0", " ").split())
    assert re.search(r"\d+ of \d+ failures name a node", flat)
    assert not re.search(r"no node[^.]{0,30} has (excess|significantly)|none of 200 flagged|0 of 200 nodes", flat, re.I)
