"""Published tables beside those of a trace: their cells, and their form on the page."""

import re
from pathlib import Path

import polars as pl
import pytest
import yaml
from study_runs import ROOT
from ttf.commands.table import render_published_table
from ttf.engine.storage.tables import write_csv
from ttf.page.replication.findings import fill_words, merge_layouts, read_claims
from ttf.page.replication.scorecard import implied_counts, scorecard
from ttf.page.replication.study_tables import build_study_tables, format_printed, format_value
from ttf.page.report.published_studies import build_table
from ttf.page.report_contracts import STUDY_TABLES
from ttf.page.results_tables import load_all_contracts
from ttf.study.configuration.claims import check_claims, load_claims
from ttf.study.configuration.messages import ConfigError

TABLE = pl.DataFrame(
    {
        "kind": ["a", "b", "c"],
        "r": [0.4412, 0.9, None],
        "p": [0.0201, 0.5, None],
        "low": [0.1, None, None],
        "high": [0.8, None, None],
        "n": [27, 30, 0],
        "reason": [None, None, "too few jobs"],
    }
)
DOCUMENT = yaml.safe_load("""
sources: {paper: A <paper>}
claims:
  - {id: a-r, of: data, source: paper, statement: r of a, published: 0.44, unit: r, evidence: printed, tolerance: 0.005,
     printed: {r: "0.44", p: "2.01e-02"}, why: printed, quantity: {table: t, where: {kind: a}, column: r}}
  - {id: b-r, of: data, source: paper, statement: r of b, published: 0.1, unit: r, evidence: digitised,
     tolerance: 0.005, why: printed, suspect: pasted, quantity: {table: t, where: {kind: b}, column: r}}
  - {id: c-r, of: data, source: paper, statement: r of c, published: 0.5, unit: r, evidence: printed, missing: no logs}
  - {id: rest, of: data, source: paper, statement: further, published: 4, unit: h, evidence: printed, tolerance: 1,
     why: a bound, quantity: {table: t, where: {kind: b}, column: n}}
tables:
  paper:
    - name: first
      title: The first table
      heading: Kind
      note: A note
      rows:
        - [{group: G}]
        - [{row: A, id: a, use: "57.7"}, {row: B, id: b, use: null}, {row: C, id: c, use: "1"}]
      columns:
        - {head: r, claim: "{id}-r", cell: {table: t, where: {kind: "{id}"}, column: n}}
        - {head: p, unit: p, cell: {table: t, where: {kind: "{id}"}, column: p, low: low, high: high}}
        - {head: use, print: use}
""")


def make_cells(study=None, table=TABLE, document=DOCUMENT) -> tuple[pl.DataFrame, pl.DataFrame]:
    study = study or {"mine": ["mine", "data"]}
    claims, scores = read_claims([document]), (study, lambda *_: table)
    scored, implied = scorecard(claims, *scores), implied_counts(claims, *scores)
    cells = build_study_tables(merge_layouts([document, {}]), claims, *scores, scored, implied)
    STUDY_TABLES.check(cells)
    return cells, scored


def pick(cells: pl.DataFrame, row: str, column: str) -> dict:
    return cells.row(by_predicate=(pl.col("row") == row) & (pl.col("column") == column), named=True)


def test_each_cell_has_the_printed_number_and_that_of_the_trace():
    cells, _ = make_cells()
    assert cells.height == 9
    names = ("printed", "value", "n", "verdict", "note", "claim")
    assert [pick(cells, "A", "r")[name] for name in names] == ["0.44", 0.4412, 27, "reproduced", None, "a-r"]
    expected = ["≈0.1", 0.9, 30, "suspect in the source", "pasted", "b-r"]
    assert [pick(cells, "B", "r")[name] for name in names] == expected
    names = ("printed", "value", "ci_low", "ci_high", "cell")
    assert [pick(cells, "A", "p")[name] for name in names] == [None, 0.0201, 0.1, 0.8, "t.p"]
    assert [pick(cells, "B", "p")[name] for name in names] == [None, 0.5, None, None, "t.p"]
    assert pick(cells, "C", "p")["note"] == "too few jobs"
    assert [pick(cells, row, "use")["printed"] for row in "ABC"] == ["57.7", None, "1"]


def test_a_cell_stands_in_where_the_claim_cannot_be_computed():
    cells, _ = make_cells()
    cell = pick(cells, "C", "r")
    assert (cell["printed"], cell["value"], cell["verdict"], cell["note"]) == ("0.5", 0.0, None, None)
    cell = pick(make_cells(table=None)[0], "C", "r")
    assert (cell["value"], cell["note"]) == (None, "no logs"), "where neither has it, the claim knows why"


def test_only_traces_of_the_data_set_have_the_table():
    assert make_cells({"other": ["other", "sacct"]})[0].is_empty()
    cells, _ = make_cells({"one": ["one", "data"], "two": ["two", "data"], "other": ["other"]})
    assert cells["trace"].unique(maintain_order=True).to_list() == ["one", "two"]


def test_the_points_of_a_pair_are_compared_with_those_of_the_trace():
    document = yaml.safe_load(yaml.safe_dump(DOCUMENT))
    document["tables"]["paper"][0] |= {
        "rows": [[{"row": "A", "id": "a"}]],
        "columns": [{"head": "points", "claim": "{id}-r", "points": True}],
    }
    for n, verdict, note in ((27, "agrees", None), (90, "differs", "the printed r and p imply 27 to 28 points, ")):
        cells, _ = make_cells(table=TABLE.with_columns(n=pl.lit(n)), document=document)
        (cell,) = cells.iter_rows(named=True)
        assert (cell["printed"], cell["value"], cell["verdict"]) == ("27 to 28", n, verdict)
        assert (cell["note"] or "").startswith(note or "")


@pytest.mark.parametrize(
    ("value", "unit", "printed", "here"),
    [
        (0.5351, "share", "53.51%", "53.5%"),
        (9707.03, "s", "9,707.03", "9,707.0"),
        (0.000045, "p", "0.000045", "4.50e-05"),
        (-0.14, "r", "−0.14", "−0.14"),
        (1200.0, "jobs", "1,200", "1,200"),
        (1.0, "share", "100%", "100%"),
    ],
)
def test_numbers_have_the_digits_of_the_publication(value, unit, printed, here):
    assert format_printed(value, unit) == printed
    assert format_value(value, unit) == here


def test_words_of_rows_keep_their_type():
    row = {"n": 4, "words": ["a", "b"], "x": None}
    filled = fill_words({"where": {"a": "{n}", "b": "{words}", "c": "is {n}", "d": 1, "e": "{x}", "f": ["{n}"]}}, row)
    assert filled["where"] == {"a": 4, "b": ["a", "b"], "c": "is 4", "d": 1, "e": None, "f": [4]}


# The page ---------------------------------------------------------------------------------------------------


def test_the_cells_of_the_page_have_exact_numbers_and_the_class_of_their_verdict():
    html = build_table(make_cells()[0]).table.html("first")
    assert 'data-v="0.4412" class="same"' in html
    assert 'data-v="0.9" class="doubt"' in html
    assert 'data-v="0.0201">2.01e-02 (1.00e-01–8.00e-01)' in html
    assert "r, printed" in html and "r, here" in html and "p, here" not in html


def test_a_paper_gets_the_table_with_its_source_and_a_note(tmp_path, monkeypatch):
    cells, _ = make_cells()
    write_csv(cells, tmp_path / "study_tables.csv")
    markdown = render_published_table(tmp_path, "mine", "first").splitlines()
    assert markdown[0] == "**The first table. A note. Printed: A <paper>. Here: trace mine.**"
    assert markdown[2].startswith("|  | Kind | r, printed | r, here | p |") and markdown[4].startswith(
        "| G | A | 0.44 |"
    )
    assert "95% CI" in markdown[-1] and "http" not in markdown[-1]
    latex = render_published_table(tmp_path, "mine", "first", is_latex=True)
    assert r"\begin{tabular" in latex and "0.441" in latex
    cff = tmp_path / "CITATION.cff"
    cff.write_text("version: '1.2'\nrepository-code: https://code.example\n")
    monkeypatch.setattr("ttf.commands.table.find_workflow_file", lambda name: cff)
    assert render_published_table(tmp_path, "mine", "first").endswith("Failure 1.2, https://code.example.")
    assert render_published_table(tmp_path, "mine", "second") == "" == render_published_table(Path("none"), "mine", "x")


# The file ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('claim: "{id}-r"', 'claim: "{id}-x"'), r"there is no claim a-x"),
        (('claim: "{id}-r"', 'claim: "{of}-r"'), r"the row A has no word of\."),
        (("print: use", "unit: s"), r"names no number"),
        (("{row: A, ", "{"), r"a row has no heading"),
        (("tables:\n  paper:", "tables:\n  other:"), r"is not the source of a claim"),
    ],
)
def test_an_error_of_a_layout_names_its_place(tmp_path, change, message):
    file = tmp_path / "claims.yaml"
    text = yaml.safe_dump(DOCUMENT, width=10_000, default_flow_style=None, sort_keys=False)
    text = text.replace("'{id}-r'", '"{id}-r"')
    file.write_text(text)
    assert load_claims(file)["tables"]
    assert change[0] in text, text
    file.write_text(text.replace(*change))
    with pytest.raises(ConfigError, match=message):
        load_claims(file, "claims.yaml")


def test_a_cell_of_an_unknown_column_is_refused():
    with pytest.raises(ConfigError, match=r"tables\.paper\.first\.r: there is no table t"):
        check_claims(DOCUMENT, {}, "claims.yaml")


@pytest.mark.parametrize("name", ["drift", "mttf_by_gpus"])
def test_a_layout_with_the_name_of_another_table_is_refused(name):
    document = yaml.safe_load(yaml.safe_dump(DOCUMENT).replace("name: first", f"name: {name}"))
    with pytest.raises(ConfigError, match=rf"mine\.yaml: tables\.paper: {name} can be .* call it mine_{name}\."):
        check_claims(document, load_all_contracts(), "mine.yaml")


def test_names_of_tables_on_the_page_that_are_not_of_the_results_have_no_underscore():
    templates = [*(ROOT / "scripts/ttf/analyses").rglob("*.qmd"), *(ROOT / "report").rglob("*.qmd")]
    names = {
        name for file in templates for name in re.findall(r'<<-? table\("(\w+)"', file.read_text(encoding="utf-8"))
    }
    assert len(names) > 20 and not {name for name in names if "_" in name} - load_all_contracts().keys()
