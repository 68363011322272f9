"""The synthetic Philly trace: rows that the study accepts, the published numbers."""


import polars as pl
import pytest
from of_formats import derive_table, raw_schemas
from samples.philly import sample
from ttf.formats.philly import read as philly_raw
from ttf.raw.ingest import ingest

JOBS = 3_000
TABLES = [name for name in sample.FILES if name != "loss_log"]


@pytest.fixture(scope="module")
def ingested(tmp_path_factory):
    """Jobs, attempts and nodes as the study reads them; the row account."""
    folder = tmp_path_factory.mktemp("philly")
    sample.write_sample(folder / "new", JOBS)
    schemas = raw_schemas("philly")
    files = {table: [folder / "new" / sample.FILES[table]] for table in TABLES}
    (folder / "raw").mkdir()
    account, _ = ingest(files, schemas, folder / "raw", 0.0, philly_raw.READERS)
    raw = {table: pl.scan_parquet(folder / f"raw/{table}.parquet") for table in TABLES}
    return (
        derive_table("philly", "jobs", raw),
        derive_table("philly", "attempts", raw),
        derive_table("philly", "nodes", raw),
        account,
    )


def test_every_row_is_accepted_and_most_listed_machines_are_wrong(ingested):
    jobs, _, nodes, account = ingested
    assert account["rows_quarantined"].sum() == 0
    assert jobs.height == JOBS
    seen_nodes = nodes.drop_nulls("gpu_count")
    assert set(seen_nodes["gpu_count"]) == {4, 8}
    assert nodes.height == seen_nodes.height + 2
    assert 0.02 < (seen_nodes["gpu_count"] == seen_nodes["listed_gpu_count"]).mean() < 0.2
    flags = jobs.select(pl.col("no_attempts", "missing_start", "missing_end", "dst_ambiguous", "out_of_window").sum())
    assert min(flags.row(0)) > 0
    assert jobs["zone_contradicted"].sum() == 0


# ---- the configured numbers come out ----


def test_shares_of_the_statuses_are_those_of_table_6(ingested):
    status_shares = ingested[0]["status_raw"].value_counts(normalize=True)
    share_by_status = dict(status_shares.iter_rows())
    for status, published in {"Pass": 0.693, "Killed": 0.135, "Failed": 0.172}.items():
        assert share_by_status[status] == pytest.approx(published, abs=0.003)
