"""Placements: which part of an attempt ran on which machine, format by format."""

from functools import partial

import polars as pl
import pytest
from format_tables import derive_table
from pai_products import derive_placements
from sacct_story import FIXTURES, derive_tables
from ttf.engine.storage.tables import read_blocks
from ttf.formats.pai2020 import derive as pai2020
from ttf.records.jobs import PLACEMENT_COLUMNS

SACCT = "JobIDRaw|User|State|Submit|Start|End|NNodes|NodeList|AllocTRES|FailedNode\n"


@pytest.fixture
def pai(ingested, tmp_path):
    def ingest_pai(tasks, instances):
        tables = {
            "job": "".join(f"{task.split(',')[0]},i,u,Failed,1.0,2.0\n" for task in tasks),
            "task": "".join(f"{task}\n" for task in tasks),
            "instance": "".join(f"{instance}\n" for instance in instances),
        }
        ingested("pai2020", **tables)
        return {name: pl.scan_parquet(tmp_path / "raw" / f"{name}.parquet") for name in tables}

    return ingest_pai


TASKS = ["a,worker,3.0,Failed,100,,600.0,29.296875,50.0,T4", "b,ps,1.0,Terminated,100,200,600.0,29.296875,,"]
INSTANCES = [
    "a,worker,x,w,i,Failed,110.0,150.0,m1",
    "b,ps,x,w,i,Terminated,100.0,180.0,m1",
    "a,worker,y,w,i,Terminated,110.0,160.0,m2",
    "a,worker,x,w,i,,120.0,0.0,m1",
    "a,worker,z,w,i,Waiting,,,",
    "a,worker,x,w,i,Running,130.0,90.0,m2",
]


@pytest.mark.parametrize("rows_a_block", [1, 2, 100])
def test_instances_of_pai_are_placements_in_file_order(pai, monkeypatch, rows_a_block):
    monkeypatch.setattr(pai2020, "read_blocks", partial(read_blocks, rows=rows_a_block))
    # The last instance ends before it starts, so its end is blank.
    placements = derive_placements(pai(TASKS, INSTANCES))
    assert placements.schema == pl.Schema(PLACEMENT_COLUMNS)
    assert placements["attempt_id"].to_list() == [0, 1, 0, 0, 0]
    assert placements.drop("trace", "infra_failure", "attempt_id").rows() == [
        ("a", "worker", 0, 1, "m1", 110, 150, 40, 500, "failure", 2, True),
        ("b", "ps", 0, 2, "m1", 100, 180, 80, None, "success", 1, True),
        ("a", "worker", 0, 3, "m2", 110, 160, 50, 500, "success", 2, True),
        # The instance has no status, so the task's status applies.
        ("a", "worker", 1, 1, "m1", 120, None, None, 500, "failure", 2, False),
        ("a", "worker", 2, 1, "m2", 130, None, None, 500, "running", 2, True),
    ]
    assert placements["infra_failure"].null_count() == 5


def slurm_placements(tmp_path, *records):
    (tmp_path / "dump.txt").write_text(SACCT + "".join(f"{record}\n" for record in records))
    derive_tables(tmp_path / "dump.txt", folder=tmp_path / "raw")
    return derive_table("sacct", "placements", {"record": pl.scan_parquet(tmp_path / "raw/record.parquet")})


def test_nodes_of_a_slurm_run(tmp_path):
    rows = slurm_placements(
        tmp_path,
        "1|ana|COMPLETED|0|10|30|1|n1|cpu=1,gres/gpu=2|",
        "2|ana|NODE_FAIL|0|10|40|3|n[1-3]|cpu=3,gres/gpu=6|n2",
        "3|ana|NODE_FAIL|0|10|50|2|n[1-2]|cpu=2|",
        "4|ana|NODE_FAIL|0|10|60|1|n3|cpu=1|",
        "5|ana|FAILED|0|10|60|2|n[1-2]|cpu=2|",
        "6|ana|PENDING|0|||2||cpu=2|",
    )
    assert rows.schema == pl.Schema(PLACEMENT_COLUMNS)
    assert rows.select("job_id", "placement", "node", "runtime_s", "gpu_milli", "nodes", "infra_failure").rows() == [
        ("1", 0, "n1", 20, 2000, 1, False),
        ("2", 0, "n1", 30, None, 3, False),
        ("2", 1, "n2", 30, None, 3, True),
        ("2", 2, "n3", 30, None, 3, False),
        ("3", 0, "n1", 40, None, 2, None),
        ("3", 1, "n2", 40, None, 2, None),
        ("4", 0, "n3", 50, 0, 1, True),
        ("5", 0, "n1", 50, None, 2, False),
        ("5", 1, "n2", 50, None, 2, False),
    ]


def test_placements_of_a_real_slurm_add_up_to_its_runs(tmp_path):
    _, _, attempts = derive_tables(FIXTURES / "real_readme.txt", folder=tmp_path)
    placements = derive_table("sacct", "placements", {"record": pl.scan_parquet(tmp_path / "record.parquet")})
    assert placements.height == attempts["node_list"].list.len().sum()
    nodes_by_run = placements.group_by("job_id", "attempt", maintain_order=True).agg("node")
    attempt_rows = attempts[placements["attempt_id"]].select("job_id", "attempt")
    assert attempt_rows.equals(placements.select("job_id", "attempt"))
    assert nodes_by_run["node"].to_list() == attempts.drop_nulls("node_list")["node_list"].to_list()
