"""Kernel logs and events out of public bug reports: which lines are which error, file by file; a person's patterns."""

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from ttf.raw.node_logs.node_names import NodeNames
from ttf.raw.node_logs.reader import REJECTED, LogOptions, read_node_logs
from ttf.raw.node_logs.rules import Rules
from ttf.study.configuration.log_rules import load_log_rules

SHIPPED = Path(__file__).resolve().parents[2] / "config" / "node_log_rules.yaml"
# Path: number, code, component and severity of the errors.
FILES = """
logs/01_mig_xid.log: 2 XID 94 GPU memory error
logs/02_mce_corrected: 1 ECC CORRECTED Memory warning
logs/03_sxid_nonfatal.log: 1 SXID 22013 NVSwitch warning
logs/04_fallen_off_multiline: 1 XID 79 PCIe error
logs/04_xid79_crashdump_continuation: 1 AER CORRECTED PCIe warning, 1 XID 79 PCIe error
logs/12_thermal.log: 2 THERMAL Power and cooling error
logs/13_disk.log: 7 DISK Storage error
logs/14_ghes_uncorrected.log: 1 ECC Memory error
logs/15_nvlink5.log: 1 XID 144 NVLink warning, 1 XID 145 NVLink error, 5 XID 145 NVLink warning, \
5 XID 146 NVLink warning, 1 XID 147 NVLink warning, 2 XID 149 NVLink error, 2 XID 149 NVLink warning, \
1 XID 150 NVLink error
logs/17_nvsentinel.jsonl: 1 XID 79 PCIe error, 1 XID 95 GPU memory error
reports/node_logs: 10 XID 145 NVLink warning, 1 XID 149 NVLink error, 1 XID 160 GPU memory warning, \
4 XID 79 PCIe error, 2 XID 94 GPU memory error
"""


def read(shared_data, path, own=""):
    path = shared_data / "strangers" / path
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the checkout")
    rules = Rules.from_options(load_log_rules(SHIPPED, own))
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return read_node_logs(files, LogOptions(rules, "UTC", None, NodeNames([]), 5, 604_800))


@pytest.mark.parametrize("row", FILES.strip().splitlines())
def test_errors_of_a_log(shared_data, row):
    path, expected = row.split(": ")
    logs = read(shared_data, path)
    errors = Counter(logs.errors.select("code", "component", "severity").rows())
    assert ", ".join(f"{count} {' '.join(error)}" for error, count in sorted(errors.items())) == expected
    assert not logs.account.rows.keys() & set(REJECTED)


def test_xids_by_the_action_of_the_catalogue(shared_data):
    errors = read(shared_data, "logs/16_xid_by_own_criterion.csv").errors
    by_application = errors.filter(application=True, severity="error", component="GPU")
    others = errors.filter(~pl.col("application"))
    assert by_application.height == 34
    assert others["severity"].unique().to_list() == ["info"]
    assert sorted(others["code"]) == ["XID 106", "XID 107", "XID 152", "XID 153", "XID 162"]


@pytest.mark.parametrize("layout", ["iso", "json"])
@pytest.mark.parametrize("number", range(4))
def test_a_pattern_of_a_person(shared_data, number, layout):
    own = shared_data / "strangers" / "faults" / "rules" / str(number) / "rules.yaml"
    assert read(shared_data, f"faults/rules/{number}/{layout}", str(own)).errors.filter(code="MINE").height == 1
