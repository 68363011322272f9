"""`ttf metrics` on a finished study: each value is a cell, and a bad call writes nothing."""

import csv
import json
import shutil

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from study_runs import OWN, ROOT, Checkout
from ttf.page.monitoring.open_metrics import GAUGES, ROW_GAUGES, TABLES

METRICS, ALERTS = (f"{OWN}/monitoring/{name}" for name in ("time_to_failure.prom", "alert_rules.yaml"))


def run(study: Checkout, *arguments: str) -> tuple[int, str]:
    process = study.ttf(*arguments)
    return process.returncode, process.stdout + process.stderr


def test_each_value_is_a_cell_and_two_runs_give_the_same_bytes(study, tmp_path):
    (study.folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/metrics.md", study.folder / "docs")
    out = tmp_path / "node-exporter" / "study.prom"
    code, output = run(study, "metrics", f"--out={out}")
    assert (code, output.splitlines()[-1].endswith(f" metrics: {METRICS}, {ALERTS}, {out}")) == (0, True), output
    assert "no alert on outages.up.availability: the traces of this study lack that number.\n" in output
    text = (study.folder / METRICS).read_text()
    assert out.read_text() == text
    assert [path.name for path in out.parent.iterdir()] == ["study.prom"]
    numbers = json.loads((study.folder / "results/sample/metrics.json").read_text())
    cells = {float(number["value"]) for number in numbers.values() if not isinstance(number["value"], str)}
    cells |= {number["n"] for number in numbers.values()} | {1}
    for name in {gauge.table for gauge in ROW_GAUGES}:
        path = study.folder / "results/sample" / TABLES[name].path
        rows = csv.reader(path.read_text().splitlines()) if path.is_file() else ()
        cells |= {float(cell) for row in rows for cell in row if cell.replace(".", "").replace("e-", "").isdigit()}
    families = list(text_string_to_metric_families(text))
    values = [sample.value for family in families for sample in family.samples]
    assert (len(families), len(values)) == (30, 50)
    assert {*values} <= cells
    assert run(study, "verify")[0] == 0, "the files are known"
    run(study, "metrics")
    assert (study.folder / METRICS).read_text() == text
    with (study.folder / METRICS).open("a") as file:
        file.write("ttf_more 1\n")
    assert f"{METRICS}: edited since `ttf` wrote it. Remove it." in run(study, "verify")[1]


def test_each_tile_has_its_metric(finished_study):
    brief = json.loads((finished_study.folder / "results/sample/brief.json").read_text())
    keys = [tile["value"].partition("{")[2].partition("|")[0] for tile in brief["tiles"] if tile["state"] != "withheld"]
    assert len(keys) > 2
    exported = {gauge.key for gauge in GAUGES} | {gauge.bounds.format("high") for gauge in GAUGES}
    assert {*keys} <= exported


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--out=metrics.txt",),
            "error: --out metrics.txt: name a file that ends in .prom; the node exporter",
        ),
        (("--rules=none.yaml",), "error: none.yaml: there is no such file"),
        (("--study=none",), "error: --study none: there is no such study here"),
    ],
)
def test_a_bad_call_is_one_message_and_writes_nothing(study_of_module, arguments, message):
    code, output = run(study_of_module, "metrics", *arguments)
    assert (code, output.count("\n"), output[: len(message)]) == (2, 1, message)
    assert not (study_of_module.folder / METRICS).exists()
    assert not (study_of_module.folder / "metrics.txt").exists()


def test_edited_results_are_not_exported(study):
    path = study.folder / "results/sample/metrics.json"
    path.write_text(path.read_text().replace('"value": 0.', '"value": 0.9', 1))
    code, output = run(study, "metrics")
    assert (code, output.count("\n")) == (2, 1), output
    assert not (study.folder / METRICS).exists()
