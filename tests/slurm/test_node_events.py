"""Nodes of a real Slurm go down, are drained and come back; the two commands of the README tell the study of it."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
import yaml
from of_formats import raw_schemas
from one_machine_slurm import Slurm, until
from study_runs import ROOT, environment
from ttf.formats.protocol import Source, code_of
from ttf.formats.sacct.read import READERS
from ttf.raw.ingest import ingest
from ttf.records.outages.outage_causes import with_rules
from ttf.records.outages.outage_records import exposure_of, outages_of

RULES = yaml.safe_load((ROOT / "config/outage_causes.yaml").read_text())["rules"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# How far the second that Slurm writes may lie outside the command that made it do so.
SLACK_S = 3
# Long enough that what is down for it is told from what is not; short.
DOWN_S = 3


@dataclass
class Done:
    """What was done to a node: between which two moments it went down, between which it came back."""

    node: str
    down: tuple[float, float]
    up: tuple[float, float] | None
    level: str
    symptom: str
    cause: str
    planned: bool = False


@dataclass
class Operator:
    """Who sets the nodes of the Slurm of these tests down and up again."""

    slurm: Slurm

    def update(self, node: str, *settings: str) -> tuple[float, float]:
        """Between which moments the node was updated."""
        before = time.time()
        self.slurm("scontrol", "update", f"nodename={node}", *settings)
        return before, time.time()

    def state(self, node: str) -> str:
        return self.slurm("sinfo", "-h", "-N", "-n", node, "-o", "%T").split()[0]

    def back(self, node: str) -> tuple[float, float]:
        """The node in service again, after some seconds out of it."""
        time.sleep(DOWN_S)
        before, _ = self.update(node, "state=resume")
        until(lambda: self.state(node) == "idle")
        return before, time.time()

    def rows(self) -> list[list[str]]:
        """The node events, by the command of the README."""
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
    """The lines of the README that print node events, into this folder."""
    lines = [line for line in README.splitlines() if line.startswith(("export TZ", "sacctmgr "))]
    assert len(lines) == 3
    return "\n".join(lines).replace("my_slurm", str(folder))


@pytest.fixture(scope="module")
def told(slurm, tmp_path_factory):
    """What was done, since when; what the study makes of it: outages, records and exposure."""
    operator, done, since = Operator(slurm), [], time.time()
    until(lambda: operator.state("n1") == operator.state("n2") == "idle")

    down = operator.update("n1", "state=down", "reason=bad DIMM")
    done.append(Done("n1", down, operator.back("n1"), "down", "bad DIMM", "bad DIMM"))

    planned = "scheduled maintenance: firmware"
    down = operator.update("n2", "state=drain", f"reason={planned}")
    done.append(Done("n2", down, operator.back("n2"), "drained", planned, planned, planned=True))

    # Drained with a job on it: out of use from the end of the job on.
    job = slurm("sbatch", "--parsable", "-A", "default", "-w", "n1", "--wrap", "sleep 300").strip()
    until(lambda: int(job) in slurm.jobs("RUNNING"))
    operator.update("n1", "state=drain", "reason=fan noise | ticket 4711")
    time.sleep(2 * SLACK_S)
    before = time.time()
    slurm("scancel", job)
    until(lambda: operator.state("n1") == "drained")
    down = before, time.time()
    noisy = "fan noise ¦ ticket 4711"
    done.append(Done("n1", down, operator.back("n1"), "drained", noisy, noisy))

    # A reason given later, and a state.
    down = operator.update("n2", "state=down", "reason=Not responding")
    time.sleep(DOWN_S)
    operator.update("n2", "reason=IB cable broken")
    time.sleep(DOWN_S)
    operator.update("n2", "state=drain", "reason=IB cable swapped, on trial")
    done.append(Done("n2", down, operator.back("n2"), "drained", "Not responding", "IB cable swapped, on trial"))

    # A daemon started again is no outage.
    slurm.restart_node("n1")
    until(lambda: operator.state("n1") == "idle")

    # The controller is stopped and started again, and then started cold: no outage of any node.
    slurm.stop_controller()
    time.sleep(DOWN_S)
    slurm.start_controller()
    until(lambda: operator.state("n1") == operator.state("n2") == "idle")
    slurm.stop_controller()
    with (slurm.folder / "slurm.conf").open("a") as conf:  # or ids of jobs would be given out again
        conf.write(f"FirstJobId={int(job) + 1}\n")
    slurm("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups", "slurmctld", "-c")
    until(lambda: operator.state("n1") == operator.state("n2") == "idle")

    down = operator.update("n2", "state=drain", "reason=disk to be replaced")
    done.append(Done("n2", down, None, "drained", "disk to be replaced", "disk to be replaced"))
    # Slurm writes its events a little later.
    last = ["n2", "Unknown", "disk to be replaced"]
    until(lambda: last in [[*row[:1], *row[2:]] for row in operator.rows()])
    until(lambda: sum(row[2] == "Unknown" for row in operator.rows()) == 1)
    folder = tmp_path_factory.mktemp("events")
    slurm("env", f"PATH={environment()['PATH']}", "bash", "-e", "-c", commands(folder))
    printed = time.time()
    operator.back("n2")

    schemas = raw_schemas("sacct")
    files = [folder / "cluster.txt", folder / "nodes.txt"]
    ingest({"node_event": files}, schemas, folder, 0.0, READERS)
    source = Source({"node_event": pl.scan_parquet(folder / "node_event.parquet")})
    format_ = code_of("ttf.formats.sacct.derive")
    exposure = exposure_of("t", format_.exposure(source))
    return (
        done,
        (since, printed),
        outages_of("t", with_rules(format_.outage_records(source), RULES), exposure),
        exposure,
    )


def test_every_outage_is_found_and_no_other(told):
    done, (since, _), (outages, records), _ = told
    found = outages.filter(pl.col("start_s") >= int(since)).sort("start_s")
    shown = found.select("node", "level", "cause", "planned", open=pl.col("end_s").is_null())
    assert shown.rows() == [(one.node, one.level, one.cause, one.planned, one.up is None) for one in done]
    for one, row in zip(done, found.to_dicts(), strict=True):
        assert one.down[0] - SLACK_S <= row["start_s"] <= one.down[1] + SLACK_S, one
        if one.up:
            assert one.up[0] - SLACK_S <= row["end_s"] <= one.up[1] + SLACK_S, one
    symptoms = records.filter(pl.col("start_s") >= int(since)).sort("start_s")
    assert symptoms["symptom"].to_list() == [one.symptom for one in done]
    # On 22.05 another reason alone makes no row.
    assert symptoms["rows"].to_list()[3] >= 2


def test_both_nodes_were_watched_but_while_there_was_no_controller(told):
    done, (since, printed), (outages, _), exposure = told
    assert set(exposure["node"]) == {"n1", "n2"}
    ours = exposure.filter(pl.col("until_s") > since)
    assert ours["from_s"].min() <= since + SLACK_S
    assert ours["until_s"].max() <= printed + SLACK_S
    assert ours["until_s"].max() >= done[-1].down[0] - SLACK_S
    assert outages.filter(pl.col("start_s") >= int(since))["counted"].all()


def test_the_readme_asks_for_what_the_tests_of_dumps_have():
    assert re.findall(r"format=(\S+)", commands(Path("x"))) == [
        "Cluster,NodeName,Start,End,State,StateRaw,Reason,User",
        "Cluster,ClusterNodes,Start,End,TRES,Reason",
    ]
