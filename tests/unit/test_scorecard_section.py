"""The report's section on published findings where there are hundreds of them: counts of all, lines of the first."""

import re
from collections import Counter
from itertools import cycle, islice
from pathlib import Path

import polars as pl
import pytest
from prose import slips
from ttf.replication.scorecard import (
    DIFFERS,
    NOT_COMPUTABLE,
    NOT_RUN,
    REPRODUCED,
    SUSPECT,
)
from ttf.report.scorecard import MOST_ROWS, scorecard_section
from ttf.report.source import environment
from ttf.stages import IMPLIED_N, SCORECARD
from ttf.tables import write_csv

JINJA = environment(Path(__file__).resolve().parents[2] / "report")
VERDICTS = (REPRODUCED, DIFFERS, SUSPECT, NOT_COMPUTABLE, NOT_RUN)


def findings(verdicts) -> pl.DataFrame:
    """A finding for each verdict, of three sources and two traces."""
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


def section(folder: Path, scored: pl.DataFrame) -> str:
    write_csv(scored, folder / "scorecard.csv")
    write_csv(pl.DataFrame(schema=IMPLIED_N.schema), folder / "implied_n.csv")
    return scorecard_section(JINJA, folder / "scorecard.csv", folder / "implied_n.csv")


def tables_of(text: str) -> dict[str, str]:
    """Name -> HTML."""
    blocks = re.split(r"(?m)^::: ?\{#tbl-scorecard-", text)[1:]
    return {re.match(r"\w+", block)[0]: block for block in blocks}


@pytest.mark.parametrize("count", [5, 41, 5 * MOST_ROWS, 5 * MOST_ROWS + 5, 700])
def test_all_are_counted_and_the_first_shown(tmp_path, count):
    verdicts = list(islice(cycle(VERDICTS), count))
    text = section(tmp_path, findings(verdicts))
    counts, tables = Counter(verdicts), tables_of(text)
    prose = text.split(":::")[0]
    computed = sum(counts[verdict] for verdict in (REPRODUCED, DIFFERS, SUSPECT))
    assert f"{computed:,} published findings could be computed" in prose
    assert f"In all, {count:,} findings stand in config/claims.yaml" in prose
    assert slips(prose) == []
    expected = {
        "differs": counts[DIFFERS] + counts[SUSPECT],
        "reproduced": counts[REPRODUCED],
        "missing": counts[NOT_COMPUTABLE],
    }
    assert tables.keys() == {"sources", *expected}
    for name, rows in expected.items():
        assert len(re.findall(r"\bnote \d+", tables[name])) == min(rows, MOST_ROWS), name
        assert (f"The first {MOST_ROWS} of {rows:,}." in tables[name]) == (rows > MOST_ROWS), name
    # What differs comes before what is in doubt, and takes all the lines if there are enough of it.
    shown = re.findall(rf"\b({DIFFERS}|{SUSPECT})\b", tables["differs"].split("</thead>")[1].split("</table>")[0])
    assert shown.count(DIFFERS) == min(counts[DIFFERS], MOST_ROWS)


def test_numbers_have_their_units_and_no_column_is_blank(tmp_path):
    scored = findings([DIFFERS, REPRODUCED]).with_columns(published=-1.5, unit=pl.Series(["h", "share"]))
    tables = tables_of(section(tmp_path, scored))
    assert ">−1.5\u00a0h<" in tables["differs"] and ">−1.5<" in tables["reproduced"]
    assert [">n<" in tables[name] for name in ("differs", "reproduced")] == [True, True]
    without = tables_of(section(tmp_path, scored.with_columns(n=pl.lit(None, pl.Int64))))
    assert [">n<" in without[name] for name in ("differs", "reproduced")] == [False, False]


def test_none_that_could_be_computed(tmp_path):
    text = section(tmp_path, findings([NOT_RUN] * 300))
    assert "None of the published findings could be computed here." in text
    assert "trace0 (150), trace1 (150)." in text
    assert tables_of(text).keys() == {"sources"}
    assert slips(text.split(":::")[0]) == []
