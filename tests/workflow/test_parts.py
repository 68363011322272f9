"""A trace with one file per week: a new file is read alone, merged with the rest, and compared with it."""

import polars as pl
from study_runs import OWN, SMALL, Checkout, read_planned

START = 1_735_689_600
TARGETS = ("results/mine/tables/drift.csv", "results/mine/quality/suggested_schema.yaml")
CONFIG = {
    "study": ["mine"],
    "quarantine": {"max_share": 0.1},
    "registry": {
        "mine": {
            "format": "table",
            "folder": "weeks",
            "mapping": {"job_id": "id", "start": "start", "end": "end", "status": "state"},
            "times": {"format": "epoch"},
            "outcomes": {"success": ["ok"], "failure": ["bad"]},
            "windows": {"by": "part"},
        }
    },
}


def add_week(study: Checkout, number: int) -> None:
    """Write 101 jobs; the first repeats the last job of the previous week; one more has an unknown status."""
    first_job = 100 * number
    rows = [
        f"{n},{START + n},{START + n + 60},{'bad' if n % (4 - number) == 0 else 'ok'}"
        for n in range(first_job, first_job + 101)
    ]
    (study.folder / "weeks").mkdir(exist_ok=True)
    (study.folder / f"weeks/week{number}.csv").write_text(
        "\n".join(["id,start,end,state", *rows, f"x,{START},{START},huh"]) + "\n"
    )


def test_a_new_file_is_read_alone(checkout):
    add_week(checkout, 1)
    add_week(checkout, 2)
    checkout.snakemake("--", *TARGETS, one_process=True, **CONFIG)
    hashes_before = checkout.hashes()
    add_week(checkout, 3)
    jobs = read_planned(checkout.snakemake("--dry-run", "--", *TARGETS, **CONFIG))
    assert jobs == dict.fromkeys(
        ("ingest_part", "merge_parts", "describe_tables", "derive_runtimes", "measure_drift"), 1
    )
    process = checkout.snakemake("--", *TARGETS, one_process=True, **CONFIG)
    assert "week3.csv: 102 rows, 1 quarantined" in process.stderr
    assert "week2.csv" not in process.stderr
    hashes_after = checkout.hashes()
    old_parts = [name for name in hashes_before if name.startswith("mine/parts/")]
    assert old_parts
    assert {name: hashes_after[name] for name in old_parts} == {name: hashes_before[name] for name in old_parts}

    # All files at once in a fresh folder give the same bytes.
    (checkout.folder / "results").rename(checkout.folder / "in_steps")
    checkout.snakemake("--", *TARGETS, one_process=True, **CONFIG)
    assert checkout.hashes() == hashes_after

    part_account = pl.read_csv(checkout.folder / "results/mine/quality/row_account_by_part.csv")
    assert part_account.rows() == [
        ("week1.csv", "rows", 102, 101, 1),
        ("week2.csv", "rows", 102, 100, 2),
        ("week3.csv", "rows", 102, 100, 2),
    ]
    anomalies = pl.read_csv(checkout.folder / "results/mine/quality/anomalies.csv")
    assert dict(anomalies.select("code", "first_lines").iter_rows()) == {
        "unknown_value": "103 of week1.csv; 103 of week2.csv; 103 of week3.csv",
        "duplicate_key": "2 of week2.csv; 2 of week3.csv",
    }
    drift = pl.read_csv(checkout.folder / "results/mine/tables/drift.csv")
    newest = drift.filter(window="part 3: week3.csv", against="all before", statistic="failure_share")
    assert newest.select("n_before", "n_after").row(0) == (201, 100)
    jobs = pl.read_parquet(checkout.folder / "results/mine/jobs.parquet")
    assert jobs["part"].unique(maintain_order=True).to_list() == ["week1.csv", "week2.csv", "week3.csv"]


def test_shares_of_the_work_give_the_same(checkout):
    targets = (f"{OWN}/config.yaml", "results/sample/jobs.parquet", "results/sample/placements.parquet")
    checkout.snakemake("--", *targets, one_process=True, **SMALL)
    hashes_of_one_share = checkout.hashes()
    for product in targets:
        (checkout.folder / product).unlink()
    shared = SMALL | {"scatter": {"jobs": 3, "above_mb": 0, "partition_rows": 1500}}
    process = checkout.snakemake("--", *targets, one_process=True, **shared)
    assert "share 3 of 3" in process.stderr
    assert checkout.hashes() == hashes_of_one_share
    # The intermediate shares are deleted and not needed again.
    assert not (checkout.folder / "results/sample/shares").exists()
    assert checkout.planned("--", *targets, **shared) == set()


def test_a_new_day_of_drives_is_read_alone(checkout):
    """It may contain returning drives, or failures of drives that are in service again."""

    def add_day(day: int, *drives: str) -> None:
        lines = [
            f"2013-04-{day},{drive},{'B' if drive == 'd' else 'A'},1,{int((day, drive) == (12, 'b'))},9"
            for drive in drives
        ]
        text = "\n".join(["date,serial_number,model,capacity_bytes,failure,smart_9_raw", *lines, ""])
        (checkout.folder / "days").mkdir(exist_ok=True)
        (checkout.folder / f"days/2013-04-{day}.csv").write_text(text)

    config = {"study": ["mine"], "registry": {"mine": {"format": "backblaze", "folder": "days"}}}
    targets = ("results/mine/tables/afr.csv",)
    add_day(10, "a", "b", "c")
    add_day(11, "a", "b", "d")
    checkout.snakemake("--", *targets, one_process=True, **config)
    add_day(12, "a", "b", "c", "d")
    process = checkout.snakemake("--", *targets, one_process=True, **config)
    assert "2013-04-12.csv: 4 rows" in process.stderr and "2013-04-11.csv" not in process.stderr
    afr = pl.read_csv(checkout.folder / targets[0])
    assert afr.select("stratum", "drives", "drive_days", "failures").rows() == [
        ("all", 4, 10, 1),
        ("A", 3, 8, 1),
        ("B", 1, 2, 0),
    ]
    durations = pl.read_parquet(checkout.folder / "results/mine/durations.parquet")
    assert durations["unit_id"].to_list() == ["a", "b", "c", "c", "d"]
