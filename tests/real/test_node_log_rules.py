"""Kernel logs and events out of public bug reports: which lines are which error, file by file; a person's patterns."""

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from study.log_rules import load_log_rules
from ttf.raw.node_logs.node_names import NodeNames
from ttf.raw.node_logs.reader import REJECTED, LogOptions, read_node_logs
from ttf.raw.node_logs.rules import Rules

SHIPPED = Path(__file__).resolve().parents[2] / "config" / "node_log_rules.yaml"
# Path -> (severity, code, component) -> number of errors.
FILES = {
    "logs/01_mig_xid.log": {("error", "XID 94", "GPU memory"): 2},
    "logs/02_mce_corrected": {("warning", "ECC CORRECTED", "Memory"): 1},
    "logs/03_sxid_nonfatal.log": {("warning", "SXID 22013", "NVSwitch"): 1},
    "logs/04_fallen_off_multiline": {("error", "XID 79", "PCIe"): 1},
    "logs/04_xid79_crashdump_continuation": {
        ("error", "XID 79", "PCIe"): 1,
        ("warning", "AER CORRECTED", "PCIe"): 1,
    },
    "logs/12_thermal.log": {("error", "THERMAL", "Power and cooling"): 2},
    "logs/13_disk.log": {("error", "DISK", "Storage"): 7},
    "logs/14_ghes_uncorrected.log": {("error", "ECC", "Memory"): 1},
    "logs/15_nvlink5.log": {
        ("warning", "XID 144", "NVLink"): 1,
        ("warning", "XID 145", "NVLink"): 5,
        ("error", "XID 145", "NVLink"): 1,
        ("warning", "XID 146", "NVLink"): 5,
        ("warning", "XID 147", "NVLink"): 1,
        ("warning", "XID 149", "NVLink"): 2,
        ("error", "XID 149", "NVLink"): 2,
        ("error", "XID 150", "NVLink"): 1,
    },
    "logs/17_nvsentinel.jsonl": {("error", "XID 79", "PCIe"): 1, ("error", "XID 95", "GPU memory"): 1},
    "reports/node_logs": {
        ("warning", "XID 145", "NVLink"): 10,
        ("error", "XID 79", "PCIe"): 4,
        ("error", "XID 94", "GPU memory"): 2,
        ("warning", "XID 160", "GPU memory"): 1,
        ("error", "XID 149", "NVLink"): 1,
    },
}


def read(shared_data, path, own=""):
    path = shared_data / "strangers" / path
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the checkout")
    rules = Rules.from_options(load_log_rules(SHIPPED, own))
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return read_node_logs(files, LogOptions(rules, "UTC", None, NodeNames([]), 5, 604_800))


@pytest.mark.parametrize("path", FILES)
def test_errors_of_a_log(shared_data, path):
    logs = read(shared_data, path)
    assert Counter(logs.errors.select("severity", "code", "component").rows()) == FILES[path]
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
