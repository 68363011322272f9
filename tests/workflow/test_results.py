"""Finished studies from Python: tables by contract, numbers with interval and n, and what is withheld."""

import math

import pytest
import ttf
from study_runs import OWN
from ttf.commands.table import render_table
from ttf.engine.errors import StudyError
from ttf.study.finished import read_numbers


@pytest.fixture(scope="module")
def opened(finished_study):
    return ttf.open(finished_study.folder / OWN)


def test_every_number_is_the_cell_that_it_names(opened, finished_study):
    cells = read_numbers(finished_study.folder / "results/sample/metrics.json")
    for key, cell in cells.items():
        number = opened.numbers[key]
        if number.value is None:
            assert number.withheld
            continue
        assert (number.value, number.unit, number.n) == (cell["value"], cell["unit"], cell["n"])
        assert number.low is None or number.low <= number.value <= (math.inf if number.high is None else number.high)
    assert sum(bool(opened.numbers[key].definition) for key in cells) > 0.9 * len(cells)
    assert any(opened.numbers[key].clusters for key in cells)


def test_a_withheld_number_has_a_reason_and_no_value(opened):
    """Too many failures of the small sample have no end, so its mean is blank in the table too."""
    number = opened.numbers["mttf.mttf_s"]
    assert number.value is None and "no recorded end" in number.withheld
    assert opened.tables["mttf"]["mttf_s"][0] is None


def test_tables_have_the_types_of_their_contracts(opened):
    assert opened.trace("sample").jobs.height == opened.numbers["data.jobs"].value
    for name in ("mttf", "outcomes"):
        frame, contract = opened.trace("sample").tables.read(name)
        assert dict(frame.schema) == contract.schema
    with pytest.raises(KeyError, match="did you mean mttf"):
        opened.tables["mtff"]
    with pytest.raises(StudyError, match="no such trace, but sample"):
        opened.trace("x")


@pytest.mark.parametrize("is_latex", [False, True])
def test_a_table_for_a_paper_says_what_n_and_the_interval_are(opened, is_latex):
    text = render_table(opened.trace("sample"), "outcomes", is_latex=is_latex)
    frame, contract = opened.trace("sample").tables.read("outcomes")
    assert contract.description in text
    assert text.count(" \\\\" if is_latex else "\n| ") > frame.height
    with pytest.raises(StudyError, match="no column x"):
        render_table(opened.trace("sample"), "outcomes", "x")
