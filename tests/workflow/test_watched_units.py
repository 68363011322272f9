"""`ttf report DATA` on a folder of outages and of the units, which joined over time."""

import html
import json
import re

import polars as pl
import pytest
import yaml
from simulated_fleet import MTBF_S, NODES, simulate_fleet, write_fleet
from study_runs import Checkout, check_out


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Checkout:
    return check_out(tmp_path_factory.mktemp("fleet") / "checkout")


def test_a_folder_of_outages_and_units_becomes_a_report(study):
    outages, units = simulate_fleet(seed=1)
    early = next(line for line in units if line.startswith("n50,")).split(",")[1]
    outages += [f"stranger,{outages[1].split(',', 1)[1]}", f"n50,{int(early) - 200},{int(early) - 100},nic"]
    write_fleet(study.folder / "fleet", outages, units)
    process = study.report(data="fleet")
    assert process.returncode == 0, process.stderr
    lines = process.stderr.splitlines()
    assert lines[:2] == [
        "outages: outages.csv has the columns unit, start, end of the table rows.",
        "Tables: units, rows.",
    ]
    results = study.folder / "results/fleet"
    metrics = {key: entry["value"] for key, entry in json.loads((results / "metrics.json").read_text()).items()}
    assert metrics["outages.units"] == NODES
    between = [metrics[f"outages.between.{name}"] for name in ("ci_low_clustered_s", "ci_high_clustered_s")]
    assert between[0] < MTBF_S < between[1]
    assert metrics["data.outages_outside"] == 1
    assert metrics["outages.outages"] == metrics["data.outages"] - 1 == len(outages) - 3
    (anomaly,) = pl.read_csv(results / "quality/anomalies.csv").to_dicts()
    assert (anomaly["table"], anomaly["code"], anomaly["rows"]) == ("rows", "orphan", 1)
    assert anomaly["first_lines"] == len(outages) - 1
    page = (study.folder / "results/studies/fleet/report/index.html").read_text(encoding="utf-8")
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())
    assert "those while their unit was not observed (1) count in causes only" in text
    assert "Mean time to failure by GPUs per node" in text


def test_units_are_found_beside_the_table_of_a_mapping(study):
    registry = {"mine": {"format": "outages", "mapping": {"unit": "unit", "start": "start", "end": "end"}}}
    (study.folder / "my.yaml").write_text(yaml.safe_dump({"study": ["mine"], "registry": registry}))
    for data in ("fleet", "fleet/outages.csv"):
        process = study.report("-n", config="my.yaml", data=data)
        assert process.returncode == 0, process.stderr
        assert "derive_outages " in process.stdout and "fleet/units.csv" in process.stdout
    registry["mine"]["nodes"] = NODES
    (study.folder / "my.yaml").write_text(yaml.safe_dump({"study": ["mine"], "registry": registry}))
    process = study.report("-n", config="my.yaml", data="fleet")
    assert process.returncode == 1
    assert "registry.mine.nodes: the files say which nodes were observed; remove this key." in process.stderr
