"""Actions name nodes, accounts and money; the command is safe to copy, whatever the nodes are called."""

import shlex

import polars as pl
from filled_texts import filled
from hypothesis import given
from hypothesis import strategies as st
from made_numbers import ABOUT, numbers
from memory_tables import compute_metrics
from ttf.analyses.lost.account_gpu_hours import LEDGER
from ttf.analyses.nodes.find_lemon_nodes import LEMON_NODES
from ttf.analyses.outages.list_drains import DRAIN_LIST
from ttf.analyses.outages.list_drains.compute import compute, exclude_option, list_nodes
from ttf.display.node_ranges import SAFE_NAME
from ttf.display.phrases import convert_units, strip_markup, to_html
from ttf.display.trace_numbers import Numbers
from ttf.engine.size_unit import SizeUnit
from ttf.engine.storage.tables import write_csv
from ttf.formats.sacct.hostlist import expand
from ttf.page.brief.actions import actions
from ttf.page.brief.bottom_line import bottom_line
from ttf.page.brief.brief import make_brief
from ttf.page.brief.drain_commands import MOST_IN_COMMAND, command_note, drain_command
from ttf.page.brief.tiles import tiles
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs

actions, bottom_line, tiles = map(filled, (actions, bottom_line, tiles))

HOSTILE = ["$(reboot)", "n1;reboot", "n[1-99]", "-n1", "ALL", "all", "n1 n2", "n1'", "`id`", "n1\nn2", "", "<b>", "n,m"]
LEMONS = {"lemons__lemons": 1, "lemons__share_of_failures": (0.088, "share")}
EVIDENCE = {"drains__first__node": ("n201", "label"), "drains__first__fleet": ("a100", "label")}
EVIDENCE |= {"drains__first__failures": (6, "failures"), "drains__first__failures_expected": (0.225, "failures")}
OUTAGES = {"drains__listed": (2, "nodes"), "drains__nodes": (240, "nodes"), "drains__saved_gpu_hours": (35.0, "h")}
OUTAGES |= {"drains__share_of_outages": (0.099, "share"), "drains__saved_cost": (87.5, "currency")}
PRICE = {"failed_time__all__cost": (4_200_000.0, "currency"), "failed_time__currency": ("<EUR>", "label")}
PRICE |= {f"actions__{name}__cost": (2_240_000.0, "currency") for name in ("save_state", "writes")}


def lemon_nodes(**lemons):
    rows = [
        {
            "node": node,
            "fleet": "a100",
            "basis": "event",
            "counted": 6,
            "expected": 0.2,
            "q_spread": q,
            "lemon": q < 0.05,
        }
        for node, q in lemons.items()
    ]
    return LEMON_NODES.frame(rows)


def drain_list(**q_values):
    rows = [
        {"node": node, "fleet": "all", "outages": 5, "counted": 5, "expected": 0.5, "q_value": q, "listed": q < 0.05}
        for node, q in q_values.items()
    ]
    return DRAIN_LIST.frame(rows)


def action(m, *arguments):
    (drain,) = [item for item in actions(m, "job", *arguments)[0] if item.title.startswith("Check or ")]
    return drain


def test_the_list_comes_from_job_failures_and_health_events_alone(tmp_path):
    durations = {"failed_node": ["n201"] * 3 + [None, "n201"], "cause": ["XID79", "XID79", "NODE_FAIL", "XID79", "x"]}
    durations = pl.DataFrame(durations).with_columns(event=pl.Series([EVENT] * 4 + [None], dtype=pl.String))
    durations.write_parquet(tmp_path / "durations.parquet")
    write_csv(lemon_nodes(n201=0.001, n7=0.3), tmp_path / "lemon_nodes.csv")
    files = {"durations_infra": tmp_path / "durations.parquet", "lemon_nodes": tmp_path / "lemon_nodes.csv"}
    tables = compute(Inputs(files, {"lemon_nodes": LEMON_NODES}, {}))
    nodes = tables["drain_list"]
    DRAIN_LIST.check(nodes)
    assert tables["drain_summary"].is_empty() and tables["drain_backtest"].is_empty()
    row = nodes.row(0, named=True)
    assert (row["node"], row["fleet"], row["listed_by"], row["outages"]) == ("n201", "a100", "failures", None)
    assert row["failure_causes"] == "XID79 (2), NODE_FAIL (1)" and (row["failures"], row["failures_q"]) == (6, 0.001)
    assert nodes.height == 1 and tables["drains"] == {"exclude.txt": "--exclude=n201\n"}


def listed_nodes(*tables):
    return list_nodes(*tables).drop_nulls("listed_by")


def test_nodes_of_both_tests_come_first_with_the_evidence_of_each():
    nodes = list_nodes(lemon_nodes(n1=0.3, n2=0.04, n3=0.001), drain_list(n1=0.002, n2=0.03, n9=0.9))
    assert nodes["node"][-1] == "n9" and nodes.drop_nulls("listed_by").height == 3
    nodes = nodes.head(3)
    assert nodes.select("node", "listed_by").rows() == [("n2", "both"), ("n3", "failures"), ("n1", "outages")]
    assert nodes["failures_q"].to_list() == [0.04, 0.001, 0.3] and nodes["q_value"].to_list() == [0.03, None, 0.002]
    alone = listed_nodes(LEMON_NODES.frame([]), drain_list(n1=0.002))
    assert alone.select("node", "fleet", "basis").rows() == [("n1", "all", None)]
    metrics = compute_metrics("list_drains", {"drain_list": nodes})
    assert metrics["drains.first.node"]["value"] == "n2" and metrics["drains.first.outages"]["value"] == 5
    assert list_nodes(lemon_nodes(n1=0.3), drain_list()).is_empty() and exclude_option([]) == ""
    failures = lemon_nodes(n1=0.001, n2=0.001, n3=0.9)
    assert listed_nodes(failures.with_columns(basis=pl.lit("proxy")), drain_list()).is_empty()
    # Failures of components are their outages: each event counts once, and both tests must list the node.
    nodes = listed_nodes(failures.with_columns(basis=pl.lit("component")), drain_list(n1=0.002, n3=0.001))
    assert nodes.select("node", "listed_by", "failures").rows() == [("n1", "outages", None)]


def test_unsafe_names_are_listed_and_omitted_from_commands():
    nodes = list_nodes(lemon_nodes(**dict.fromkeys([*HOSTILE, "n041", "n201"], 0.001)), DRAIN_LIST.frame([]))
    assert nodes.height == len(HOSTILE) + 2
    assert exclude_option(nodes["node"]) == "--exclude=n[041,201]\n"
    command = drain_command(nodes["node"], "excess failures")
    assert command == "scontrol update NodeName='n[041,201]' State=DRAIN Reason='excess failures'"
    assert (
        command_note(nodes["node"]) == f" The command omits {len(HOSTILE)} with a name that is not safe in a command."
    )
    assert drain_command(HOSTILE, "excess failures") == ""


@given(st.lists(st.text(min_size=1, max_size=12), max_size=30, unique=True))
def test_the_shell_reads_the_command_as_four_words(names):
    safe_names = [name for name in names if SAFE_NAME.fullmatch(name)]
    command = drain_command(names, "excess outages")
    if not safe_names:
        assert command == ""
        return
    scontrol, update, nodes, *rest = shlex.split(command)
    assert (scontrol, update, rest) == ("scontrol", "update", ["State=DRAIN", "Reason=excess outages"])
    assert set(expand(nodes.removeprefix("NodeName="))) == set(safe_names[:MOST_IN_COMMAND])


def test_the_action_names_nodes_gpu_type_and_command():
    m = numbers(**LEMONS, **EVIDENCE)
    drain = action(m, ["n201", "n041", "n7", "n8"], True)
    assert strip_markup(drain.title) == "Check or drain n201, n041, n7 and 1 more"
    assert "n201 (a100): 6 failures, 0.225 expected." in strip_markup(drain.evidence)
    assert drain.command.startswith("scontrol update NodeName='n[7-8],n[041,201]' State=DRAIN")
    assert action(m, ["n201"], False).command == "", "the cluster need not run Slurm"
    hostile = action(m, ["<b>{data.jobs|9}"], True)
    assert "<b>" not in to_html(hostile.title) and hostile.command == ""
    many = [f"n{number}" for number in range(MOST_IN_COMMAND + 5)]
    assert "5 more in drains/exclude.txt" in action(m, many, True).evidence


def test_outages_alone_are_an_action_with_its_money():
    m = numbers(**OUTAGES, **PRICE)
    drain = action(m, ["n041", "n201"], True)
    assert strip_markup(drain.title) == "Check or drain n041 and n201" and drain.link == "outages"
    assert (strip_markup(drain.effect), drain.basis) == ("35.0", "model")
    assert strip_markup(drain.effect_note) == "GPU-h of outages a week · 87.5 <EUR>"
    assert "2 of 240 nodes with excess outages: 9.9% of all." in strip_markup(drain.evidence)
    assert drain.command.endswith("Reason='excess outages'")
    assert not any("draining" in text for text in actions(m, "job")[1]), "a node is listed"


def test_a_name_in_the_command_keeps_its_letters_in_another_size_unit():
    drain = action(numbers(**LEMONS), ["GPU1", "gpus2"], True)
    assert convert_units(drain, SizeUnit("node")).command == drain.command
    assert "NodeName=GPU1,gpus2" in drain.command


def test_money_stands_beside_gpu_hours_only_if_a_price_is_set():
    m = numbers(**PRICE)
    saving, *_, writes = actions(m, "job")[0]
    assert strip_markup(saving.effect_note).endswith("25.8% of all · 2,240,000 <EUR>")
    assert strip_markup(writes.effect_note) == "GPU-h per week of work · 2,240,000 <EUR>"
    assert "<EUR>" not in to_html(saving.effect_note)
    assert "48.6% of GPU time (4,200,000 <EUR>)." in strip_markup(bottom_line(m, ABOUT)[0])
    (tile,) = [tile for tile in tiles(m, {}, ABOUT) if tile.name == "failed_gpu_time"]
    assert strip_markup(tile.means).endswith("Cost: 4,200,000 <EUR>.")
    assert "Cost" not in str(make_brief(numbers(), {}, ABOUT).tiles)


def test_owners_are_named_if_there_are_several():
    rows = [
        ("account", "{x|y}<b>", "time_limit", 60.0),
        ("account", "chem", "time_limit", 20.0),
        ("account", None, "time_limit", 15.0),
        ("account", "other", "time_limit", 70.0),
        ("account", "chem", "infra_lost", 20.0),
        ("account", "chem", "infra_kept", 10.0),
        ("partition", "batch", "time_limit", 95.0),
    ]
    ledger = LEDGER.frame(
        {"scope_by": by, "scope": scope, "category": category, "gpu_hours": hours, "attempts": 1}
        for by, scope, category, hours in rows
    )
    metrics = compute_metrics("account_gpu_hours", {"ledger": ledger})
    m = numbers()
    m |= metrics
    evidence = actions(Numbers(m), "job")[0][0].evidence
    assert strip_markup(evidence).endswith("Most affected: account (x|y)<b> (60.0 GPU-h).") and "<b>" not in to_html(
        evidence
    )
    # The owners listed together, and the only partition, are not named.
    assert metrics["ledger.time_limit.account.2.name"]["value"] == "chem"
    assert "ledger.time_limit.partition.2.name" not in metrics and "ledger.infra_lost.account.1.name" not in metrics
