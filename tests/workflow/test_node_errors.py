"""Slurm accounting with the kernel's log of each node: which errors precede failures, and the nodes that they name."""

import html
import re

import acceptance
import polars as pl
import pytest
import whole_study
from acceptance import BUDGET, OPEN_ALL, PHONE, TOO_WIDE, browsing, open_page
from simulated_cluster import simulate, simulate_node_errors, write_node_logs
from ttf.analyses.causes.classify_failures.compute import NODE_ERROR
from ttf.analyses.causes.judge_node_errors import ERROR_CODES, ERROR_SUMMARY, FAILURES_BY_COMPONENT
from ttf.analyses.outages.list_drains import DRAIN_LIST
from ttf.engine.storage.tables import read_table

PAGE = "results/studies/mine/report/index.html"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Run the whole study of the simulated cluster; return its folder."""
    folder, cluster = tmp_path_factory.mktemp("node_logs"), simulate(seed=1)
    (folder / "raw").mkdir()
    cluster.dump.write_csv(folder / "raw/dump.txt", separator="|")
    write_node_logs(simulate_node_errors(cluster, 1), folder / "logs")
    entry = {"format": "sacct", "folder": "raw", "node_logs": "logs"}
    result = whole_study.run({"study": ["mine"], "registry": {"mine": entry}}, folder)
    assert (result.job, result.refused, result.crash) == (None, None, None)
    return folder


def read(study, contract) -> pl.DataFrame:
    return read_table(study / f"results/mine/tables/{contract.name}.csv", contract)


def read_page(study) -> str:
    text = html.unescape(re.sub(r"<[^>]+>", "", (study / PAGE).read_text(encoding="utf-8")))
    return " ".join(text.replace("\u00a0", " ").split())


def test_codes_are_judged(study):
    verdicts = dict(read(study, ERROR_CODES).select("code", "verdict").rows())
    assert {code for code, verdict in verdicts.items() if verdict == "precedes failures"} == {
        "XID 79",
        "XID 48",
        "IB LINK",
    }
    assert {code for code, verdict in verdicts.items() if verdict == "application"} == {"XID 13", "XID 31", "XID 43"}
    assert verdicts["XID 63"] == "does not"


def test_the_logs_name_the_three_nodes(study):
    evidence = read(study, DRAIN_LIST)
    assert sorted(evidence["node"]) == ["n064", "n082", "n122"]
    assert (study / "results/mine/drains/exclude.txt").read_text() == "--exclude=n[064,082,122]\n"


def test_attributed_failures_are_causes_of_every_analysis(study):
    summary = read(study, ERROR_SUMMARY).row(0, named=True)
    durations = pl.read_parquet(study / "results/mine/durations_infra.parquet")
    infra = durations.filter(pl.col("event").is_not_null())
    assert set(infra["basis"]) == {"event"}
    assert infra["cause"].str.contains("XID 79|XID 48|IB LINK").sum() == summary["attributed"]
    reasons = pl.read_parquet(study / "results/mine/reasons.parquet")
    # The others ended as NODE_FAIL, which a rule of the taxonomy names.
    assert 0 < (reasons["reason"] == NODE_ERROR).sum() < summary["attributed"]
    components = dict(read(study, FAILURES_BY_COMPONENT).select("component", "failures").rows())
    assert components["Network"] > 10


def test_the_page_answers(study):
    text, summary = read_page(study), read(study, ERROR_SUMMARY).row(0, named=True)
    assert re.search(r"3 of them precede failures, first (XID|IB)", text)
    assert re.search(rf"{summary['attributed']} of [\d,]+ failures on these nodes are attributed", text)
    assert re.search(r"chance alone would attribute [\d.]+ \(at most \d\)", text)
    assert re.search(r"(Drain nodes after XID (79|48)|Find the cause of IB LINK)", text)


@pytest.mark.skipif(not acceptance.CHROMIUM, reason="needs Chromium")
def test_the_answers_are_folded_but_for_one_action(study):
    with browsing() as browser, open_page(browser, study / PAGE, PHONE) as (page, faults):
        anchors = ("sec-node-errors", "sec-error-nodes")
        assert [page.locator(f"#{anchor}").is_visible() for anchor in anchors] == [False, False]
        action = page.locator(".actions tr", has_text=re.compile("Drain nodes after|Find the cause of"))
        assert action.bounding_box()["height"] < 0.4 * PHONE[1]
        assert page.evaluate("document.documentElement.scrollHeight") < BUDGET["phone"] * PHONE[1]
        page.evaluate(OPEN_ALL, True)
        assert [page.locator(f"#{anchor}").is_visible() for anchor in anchors] == [True, True]
        assert not faults and not page.evaluate(TOO_WIDE)
