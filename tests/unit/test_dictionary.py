"""The data dictionary agrees with the contracts, and the crate has its columns."""

import json
import runpy
from pathlib import Path

from ttf.engine.contract import REASON, count, reason, seconds, table
from ttf.page.publication_record import describe
from ttf.page.publish.crate import make_crate
from ttf.page.publish.dictionary import group_by_analysis
from ttf.page.publish.files import describe_file

ROOT = Path(__file__).parents[2]
to_markdown = runpy.run_path(str(ROOT / "tools/docs" / "tables.py"))["to_markdown"]
WAITS = table(
    "waits",
    "A queue.",
    jobs=count("Jobs", "Jobs that waited.", unit="jobs"),
    wait_s=seconds("Wait", "Their mean wait.", blank=REASON),
    reason=reason(),
)


def test_the_dictionary_in_the_docs_is_that_of_the_contracts():
    shipped = (ROOT / "docs/tables.md").read_text(encoding="utf-8")
    assert shipped == to_markdown(group_by_analysis()), "a contract has changed: run `make docs`"


def test_the_crate_names_the_columns_of_a_table_once(tmp_path):
    (tmp_path / "waits.csv").write_text("jobs,wait_s,reason\n3,1.5,\n")
    files = [
        describe_file(tmp_path / "waits.csv", f"results/{trace}/tables/waits.csv", {}, {WAITS.path: WAITS})
        for trace in ("a", "b")
    ]
    assert [file.description for file in files] == ["A queue. 1 row of jobs, wait_s, reason"] * 2
    metadata = describe(
        "title: A study\nabstract: What it does.\nlicense: MIT\nversion: 1.0.0\nauthors: [{name: A group}]\n", {}, {}
    )
    entities = json.loads(make_crate(files, metadata, "2025-01-31", "9.1"))["@graph"]
    column_ids = [{"@id": f"#waits-{name}"} for name in WAITS.columns]
    file_columns = [entity["variableMeasured"] for entity in entities if entity["@type"] == "File"]
    assert file_columns == [column_ids, column_ids]
    properties = [entity for entity in entities if entity["@type"] == "PropertyValue"]
    assert [{"@id": entity["@id"]} for entity in properties] == column_ids
    assert [properties[1][name] for name in ("name", "unitText", "description")] == ["wait_s", "s", "Their mean wait."]
