"""The report's section on hundreds of published findings: counts of all, table rows of the first."""

from collections import Counter
from itertools import cycle, islice
from pathlib import Path

import polars as pl
import pytest
from prose_checks import find_slips
from ttf.engine.storage.tables import write_csv
from ttf.page.replication.scorecard import DIFFERS, NOT_COMPUTABLE, NOT_RUN, REPRODUCED, SUSPECT
from ttf.page.report.scorecard_section import MOST_ROWS, read_findings
from ttf.page.report.trace_page import environment
from ttf.page.report_contracts import IMPLIED_N, SCORECARD

JINJA = environment(Path(__file__).resolve().parents[2] / "report")
VERDICTS = (REPRODUCED, DIFFERS, SUSPECT, NOT_COMPUTABLE, NOT_RUN)


def findings(verdicts) -> pl.DataFrame:
    """Make a finding for each verdict, from three sources and two traces."""
    rows = [
        {
            "id": f"f{number}",
            "trace": f"trace{number % 2}",
            "source": f"Source {number % 3}",
            "statement": f"statement {number}",
            "published": 1.0 + number,
            "computed": None if verdict in (NOT_COMPUTABLE, NOT_RUN) else 0.5 + number,
            "tolerance": 0.1,
            "verdict": verdict,
            "note": f"note {number}",
            "n": number,
            "unit": "s",
            "evidence": "from tables",
        }
        for number, verdict in enumerate(verdicts)
    ]
    return pl.DataFrame(rows, schema=SCORECARD.schema)


def render_section(folder: Path, scored: pl.DataFrame, trace: str = "trace0") -> tuple[str, dict]:
    """Render the section with tables as [name]; return its text and its tables."""
    write_csv(scored, folder / "scorecard.csv")
    write_csv(pl.DataFrame(schema=IMPLIED_N.schema), folder / "implied_n.csv")
    scored_section = read_findings(trace, folder / "scorecard.csv", folder / "implied_n.csv")
    text = JINJA.get_template("sections/scorecard.qmd").render(
        scored_section.context,
        table=lambda name, caption: f"[{name}: {caption}]",
        has_table=lambda name: name in scored_section.tables and scored_section.tables[name].frame.height > 0,
    )
    return text, scored_section.tables


@pytest.mark.parametrize("count", [5, 5 * MOST_ROWS + 5])
def test_all_are_counted_and_the_first_shown(tmp_path, count):
    verdicts = list(islice(cycle(VERDICTS), count))
    scored = findings(verdicts).with_columns(trace=pl.lit("trace0"))
    text, tables = render_section(tmp_path, scored)
    counts, prose = Counter(verdicts), text.split("[")[0]
    computed = sum(counts[verdict] for verdict in (REPRODUCED, DIFFERS, SUSPECT))
    assert f"{computed:,} published findings could be computed" in prose
    assert f"has {count:,} findings about this trace" in prose
    assert find_slips(prose) == []
    expected = {
        "differs": counts[DIFFERS] + counts[SUSPECT],
        "reproduced": counts[REPRODUCED],
        "missing": counts[NOT_COMPUTABLE],
    }
    assert tables.keys() == {"scorecard-sources", *(f"scorecard-{name}" for name in expected)}
    for name, rows in expected.items():
        assert tables[f"scorecard-{name}"].frame.height == min(rows, MOST_ROWS), name
        assert (f"The first {MOST_ROWS} of {rows:,}." in text.split(f"[scorecard-{name}")[1].split("]")[0]) == (
            rows > MOST_ROWS
        )
    # Findings that differ come before suspect ones, and may fill all rows.
    verdicts_shown = tables["scorecard-differs"].frame["verdict"].to_list()
    assert verdicts_shown.count(DIFFERS) == min(counts[DIFFERS], MOST_ROWS)


def test_numbers_have_their_units_and_no_column_is_blank(tmp_path):
    scored = findings([DIFFERS, REPRODUCED]).with_columns(
        published=-1.5, unit=pl.Series(["h", "share"]), trace=pl.lit("trace0")
    )
    _, tables = render_section(tmp_path, scored)
    assert tables["scorecard-differs"].frame["published"].to_list() == ["−1.5\u00a0h"]
    assert tables["scorecard-reproduced"].frame["published"].to_list() == ["−1.5"]
    _, no_n = render_section(tmp_path, scored.with_columns(n=pl.lit(None, pl.Int64)))
    names = ("scorecard-differs", "scorecard-reproduced")
    assert [["n" in frames[name].columns for name in names] for frames in (tables, no_n)] == [[True] * 2, [False] * 2]


def test_findings_of_one_trace_that_were_not_computed(tmp_path):
    scored = findings([NOT_RUN] * 300)
    text, tables = render_section(tmp_path, scored)
    assert "None of the published findings could be computed here." in text
    assert "has 150 findings about this trace" in text
    assert tables.keys() == {"scorecard-sources"}
    assert read_findings("another", tmp_path / "scorecard.csv", tmp_path / "implied_n.csv") is None
