"""Cells that cannot be true are blank and listed; the rows of a table of runs keep all else."""

from datetime import datetime, timedelta

import polars as pl
import pytest
from ttf.engine.errors import StudyError
from ttf.formats.table import read as table
from ttf.raw.ingest import anomalies, ingest
from ttf.raw.raw_tables import table_schemas

MAPPING = {"job_id": "id", "submit": "sub", "start": "beg", "end": "fin", "status": "state", "gpus": "gpus"}
DAY, YEAR = timedelta(days=1), timedelta(days=366)
FIRST = datetime(2025, 3, 1)


def job(n, submit=None, start=None, run=timedelta(hours=5), gpus="1"):
    submit = submit or FIRST + n * DAY / 2
    start = start or submit + timedelta(seconds=9)
    return f"j{n},{submit.isoformat()},{start.isoformat()},{(start + run).isoformat()},ok,{gpus}"


@pytest.fixture
def blanked(tmp_path):
    """Ingest sixty jobs of a month and others; return the (line, code, column) of cells, and the stored rows."""

    def run(*rows, max_share=0.01):
        document = table.schema_document({"mapping": MAPPING, "outcomes": {"success": ["ok"], "failure": ["bad"]}})
        file = tmp_path / "jobs.csv"
        file.write_text("\n".join(["id,sub,beg,fin,state,gpus", *(job(n) for n in range(60)), *rows]) + "\n")
        account, quarantine = ingest({"rows": [file]}, table_schemas(document), tmp_path, max_share, table.READERS)
        assert account["rows_accepted"].item() == 60 + len(rows)
        assert anomalies(quarantine, account)["severity"].unique().to_list() in ([], ["warning"])
        return quarantine.select("line", "reason", "column").rows(), pl.read_parquet(tmp_path / "rows.parquet")

    return run


def test_a_run_is_no_longer_than_the_records(blanked):
    rows = (
        job(61, start=datetime(2009, 1, 1), run=17 * YEAR),  # started years before its submission
        job(62, submit=datetime(2009, 1, 1)),  # all three times are far from the others
        job(63, run=2 * YEAR),
        job(64, run=DAY * 300),  # long, but it may be
        job(65, gpus="-1"),
    )
    cells, stored = blanked(*rows)
    assert cells == [
        (62, "years_before_blanked", "beg"),
        *[(63, "far_blanked", column) for column in ("sub", "beg", "fin")],
        (64, "far_blanked", "fin"),
        (66, "negative_blanked", "gpus"),
    ]
    assert stored.select(pl.col("submit_s", "start_s", "end_s", "gpu_milli").null_count()).row(0) == (1, 2, 2, 1)


def test_many_times_in_the_wrong_order_stop_the_study(blanked):
    rows = [job(60 + n, run=-DAY) for n in range(2)]
    assert [code for _, code, _ in blanked(*rows, max_share=0.05)[0]] == ["before_previous_blanked"] * 2
    with pytest.raises(StudyError, match="before_previous_blanked: 2 rows"):
        blanked(*rows)
