"""Nodes of a real Slurm go down, are drained and return; the README's two commands report the events."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
import yaml
from format_tables import raw_schemas
from one_machine_slurm import Slurm, wait_until
from study_runs import ROOT, environment
from ttf.formats.protocol import Source, load_format
from ttf.formats.sacct.read import READERS
from ttf.raw.ingest import ingest
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import build_exposure, merge_records

RULES = yaml.safe_load((ROOT / "config/outage_causes.yaml").read_text())["rules"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Tolerance between the second that Slurm records and the command that caused it.
SLACK_S = 3
# Long enough to distinguish an outage from SLACK_S.
DOWN_S = 3


@dataclass
class ExpectedOutage:
    """An outage caused on a node: the time windows in which it went down and came back."""

    node: str
    down: tuple[float, float]
    up: tuple[float, float] | None
    level: str
    symptom: str
    cause: str
    planned: bool = False


@dataclass
class Operator:
    """Sets the nodes of the tests' Slurm down and up again."""

    slurm: Slurm

    def update(self, node: str, *settings: str) -> tuple[float, float]:
        """Update the node and return the times before and after."""
        start = time.time()
        self.slurm("scontrol", "update", f"nodename={node}", *settings)
        return start, time.time()

    def state(self, node: str) -> str:
        return self.slurm("sinfo", "-h", "-N", "-n", node, "-o", "%T").split()[0]

    def resume(self, node: str) -> tuple[float, float]:
        """Wait some seconds, then resume the node; return the times before and after."""
        time.sleep(DOWN_S)
        start, _ = self.update(node, "state=resume")
        wait_until(lambda: self.state(node) == "idle")
        return start, time.time()

    def rows(self) -> list[list[str]]:
        """Return the node events from the README's command."""
        command = [
            "sacctmgr",
            "-P",
            "-n",
            "show",
            "event",
            "All_Time",
            "Event=Node",
            "format=NodeName,Start,End,Reason",
        ]
        return [row.split("|") for row in self.slurm(*command).splitlines()]


def commands(folder: Path) -> str:
    """Return the README's lines that dump node events, with this folder as target."""
    lines = [line for line in README.splitlines() if line.startswith(("export TZ", "sacctmgr "))]
    assert len(lines) == 3
    return "\n".join(lines).replace("my_slurm", str(folder))


@pytest.fixture(scope="module")
def node_events(slurm, tmp_path_factory):
    """Return the expected outages, the period, and the study's outages, records and exposure."""
    operator, expected_outages, since = Operator(slurm), [], time.time()
    wait_until(lambda: operator.state("n1") == operator.state("n2") == "idle")

    down_times = operator.update("n1", "state=down", "reason=bad DIMM")
    expected_outages.append(ExpectedOutage("n1", down_times, operator.resume("n1"), "down", "bad DIMM", "bad DIMM"))

    planned = "scheduled maintenance: firmware"
    down_times = operator.update("n2", "state=drain", f"reason={planned}")
    expected_outages.append(
        ExpectedOutage("n2", down_times, operator.resume("n2"), "drained", planned, planned, planned=True)
    )

    # A node that drains with a job on it is out of use from the end of the job.
    job = slurm("sbatch", "--parsable", "-A", "default", "-w", "n1", "--wrap", "sleep 300").strip()
    wait_until(lambda: int(job) in slurm.jobs("RUNNING"))
    operator.update("n1", "state=drain", "reason=fan noise | ticket 4711")
    time.sleep(2 * SLACK_S)
    cancel_start = time.time()
    slurm("scancel", job)
    wait_until(lambda: operator.state("n1") == "drained")
    down_times = cancel_start, time.time()
    noisy = "fan noise ¦ ticket 4711"
    expected_outages.append(ExpectedOutage("n1", down_times, operator.resume("n1"), "drained", noisy, noisy))

    # The reason changes later, and then the state.
    down_times = operator.update("n2", "state=down", "reason=Not responding")
    time.sleep(DOWN_S)
    operator.update("n2", "reason=IB cable broken")
    time.sleep(DOWN_S)
    operator.update("n2", "state=drain", "reason=IB cable swapped, on trial")
    expected_outages.append(
        ExpectedOutage(
            "n2", down_times, operator.resume("n2"), "drained", "Not responding", "IB cable swapped, on trial"
        )
    )

    # The restart of a daemon is no outage.
    slurm.restart_node("n1")
    wait_until(lambda: operator.state("n1") == "idle")

    # The controller is stopped and started again, and then started cold: no outage of any node.
    slurm.stop_controller()
    time.sleep(DOWN_S)
    slurm.start_controller()
    wait_until(lambda: operator.state("n1") == operator.state("n2") == "idle")
    slurm.stop_controller()
    with (slurm.folder / "slurm.conf").open("a") as conf:  # otherwise Slurm would reuse job ids
        conf.write(f"FirstJobId={int(job) + 1}\n")
    slurm("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups", "slurmctld", "-c")
    wait_until(lambda: operator.state("n1") == operator.state("n2") == "idle")

    down_times = operator.update("n2", "state=drain", "reason=disk to be replaced")
    expected_outages.append(
        ExpectedOutage("n2", down_times, None, "drained", "disk to be replaced", "disk to be replaced")
    )
    # Slurm writes its events with a delay.
    last_event = ["n2", "Unknown", "disk to be replaced"]
    wait_until(lambda: last_event in [[*row[:1], *row[2:]] for row in operator.rows()])
    wait_until(lambda: sum(row[2] == "Unknown" for row in operator.rows()) == 1)
    folder = tmp_path_factory.mktemp("events")
    slurm("env", f"PATH={environment()['PATH']}", "bash", "-e", "-c", commands(folder))
    print_time = time.time()
    operator.resume("n2")

    schemas = raw_schemas("sacct")
    files = [folder / "cluster.txt", folder / "nodes.txt"]
    ingest({"node_event": files}, schemas, folder, 0.0, READERS)
    source = Source({"node_event": pl.scan_parquet(folder / "node_event.parquet")})
    format_ = load_format("ttf.formats.sacct.derive")
    exposure = build_exposure("t", format_.exposure(source))
    return (
        expected_outages,
        (since, print_time),
        merge_records("t", apply_rules(format_.outage_records(source), RULES), exposure),
        exposure,
    )


def test_every_outage_is_found_and_no_other(node_events):
    expected_outages, (since, _), (outages, records), _ = node_events
    actual = outages.filter(pl.col("start_s") >= int(since)).sort("start_s")
    columns = actual.select("node", "level", "cause", "planned", open=pl.col("end_s").is_null())
    assert columns.rows() == [
        (outage.node, outage.level, outage.cause, outage.planned, outage.up is None) for outage in expected_outages
    ]
    for outage, row in zip(expected_outages, actual.to_dicts(), strict=True):
        assert outage.down[0] - SLACK_S <= row["start_s"] <= outage.down[1] + SLACK_S, outage
        if outage.up:
            assert outage.up[0] - SLACK_S <= row["end_s"] <= outage.up[1] + SLACK_S, outage
    symptoms = records.filter(pl.col("start_s") >= int(since)).sort("start_s")
    assert symptoms["symptom"].to_list() == [outage.symptom for outage in expected_outages]
    # Slurm 22.05 writes no row if only the reason changes.
    assert symptoms["rows"].to_list()[3] >= 2


def test_exposure_of_both_nodes_covers_the_run(node_events):
    expected_outages, (since, print_time), (outages, _), exposure = node_events
    assert set(exposure["node"]) == {"n1", "n2"}
    run_exposure = exposure.filter(pl.col("until_s") > since)
    assert run_exposure["from_s"].min() <= since + SLACK_S
    assert run_exposure["until_s"].max() <= print_time + SLACK_S
    assert run_exposure["until_s"].max() >= expected_outages[-1].down[0] - SLACK_S
    assert outages.filter(pl.col("start_s") >= int(since))["counted"].all()


def test_the_readme_asks_for_what_the_tests_of_dumps_have():
    assert re.findall(r"format=(\S+)", commands(Path("x"))) == [
        "Cluster,NodeName,Start,End,State,StateRaw,Reason,User",
        "Cluster,ClusterNodes,Start,End,TRES,Reason",
    ]
