"""Slurm accounting without node events: the nodes to drain come from job failures and health events, with money."""

import html
import re

import acceptance
import pytest
import whole_study
from acceptance import CHROMIUM, browsing, open_page
from simulated_cluster import simulate
from ttf.analyses.outages.list_drains import DRAIN_LIST
from ttf.engine.storage.tables import read_table

COMMAND = "scontrol update NodeName='n[064,082,122]' State=DRAIN Reason='excess failures'"
PAGE = "results/studies/mine/report/index.html"


def run_study(folder, has_health_log):
    """Run the whole study of a simulated cluster of 200 nodes, three of them bad; return its folder."""
    cluster = simulate(seed=1, bad=3)
    (folder / "raw").mkdir()
    cluster.dump.write_csv(folder / "raw/dump.txt", separator="|")
    entry = {"format": "sacct", "folder": "raw"}
    if has_health_log:
        cluster.events.write_csv(folder / "events.csv")
        entry["health_events"] = "events.csv"
    prices = {"price_per_gpu_hour": 2.5, "currency": "EUR"}
    result = whole_study.run({"study": ["mine"], "registry": {"mine": entry}, "ledger": prices}, folder)
    assert (result.job, result.refused, result.crash) == (None, None, None)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return {log: run_study(tmp_path_factory.mktemp(f"log_{log}"), log) for log in (True, False)}


def test_health_events_name_the_nodes_to_drain(finished):
    results = finished[True] / "results/mine"
    assert not (results / "outages.parquet").exists()
    assert (results / "drains/exclude.txt").read_text() == "--exclude=n[064,082,122]\n"
    evidence = read_table(results / "tables/drain_list.csv", DRAIN_LIST)
    assert sorted(evidence["node"]) == ["n064", "n082", "n122"] and set(evidence["listed_by"]) == {"failures"}
    assert evidence["failure_causes"].null_count() == 0
    text = (finished[True] / PAGE).read_text(encoding="utf-8")
    assert f'<code class="command">{html.escape(COMMAND)}</code>'.replace("&#x27;", "&#39;") in text
    assert re.search(r"of all · <data data-key=\"actions\.drain\.cost\">[\d,]+</data> <bdi>EUR</bdi>", text)


def test_without_power_no_node_is_said_to_be_well(finished):
    folder = finished[False]
    assert (folder / "results/mine/drains/exclude.txt").read_text() == ""
    text = re.sub(r"<[^>]+>", "", (folder / PAGE).read_text(encoding="utf-8"))
    flat = " ".join(html.unescape(text).replace("\u00a0", " ").split())
    assert re.search(
        r"cannot tell\W+\d+ of \d+ failures name a node; with FailedNode, health events or node logs, more would", flat
    )
    assert not re.search(r"no node[^.]{0,30} has (excess|significantly)|none of 200 flagged|0 of 200 nodes", flat, re.I)


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")
@pytest.mark.parametrize("size", [acceptance.DESK, acceptance.PHONE])
def test_the_command_is_copied_as_a_whole(finished, size):
    with browsing() as browser, open_page(browser, finished[True] / PAGE, size) as (page, faults):
        command = page.locator("#actions code.command")
        assert command.inner_text() == COMMAND
        command.click()
        assert page.evaluate("getSelection().toString()").strip() == COMMAND
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and faults == []
