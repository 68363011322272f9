"""A trace that comes as a file a week: each week a model, trained on from the last, tested on the next."""

import json

import polars as pl
from made_risk import FIRST_S, WEEK_S, with_users
from study_runs import Checkout

LINEAGE = "results/mine/tables/model_lineage.csv"
COLUMNS = {
    "id": "job_id",
    "submit": "submit_s",
    "start": "start_s",
    "end": "end_s",
    "state": "outcome",
    "user": "user",
    "account": "recurrence_group",
    "gpus": pl.col("gpu_milli") // 1_000,
}
CONFIG = {
    "study": ["mine"],
    "registry": {
        "mine": {
            "format": "table",
            "folder": "weeks",
            "mapping": {"job_id": "id", "status": "state"}
            | {name: name for name in COLUMNS if name not in ("id", "state")},
            "times": {"format": "epoch"},
            "outcomes": {name: [name] for name in ("success", "failure", "cancelled", "unknown", "running", "waiting")},
        }
    },
}


def add_week(study: Checkout, jobs: pl.DataFrame, number: int) -> None:
    """The jobs submitted in a week, from 1 on, as a table of their own."""
    (study.folder / "weeks").mkdir(exist_ok=True)
    of_week = jobs.filter((pl.col("submit_s") - FIRST_S) // WEEK_S == number - 1)
    of_week.select(**COLUMNS).write_csv(study.folder / f"weeks/week{number}.csv")


def test_a_model_a_week(checkout):
    jobs = with_users(12_000, 1, 6)
    for number in range(1, 6):
        add_week(checkout, jobs, number)
    checkout.snakemake("--", LINEAGE, one_process=True, **CONFIG)
    lineage = pl.read_csv(checkout.folder / LINEAGE)
    names = [f"part_{number}_week{number}.csv" for number in range(1, 6)]
    assert lineage["window"].to_list() == [f"part {number}: week{number}.csv" for number in range(1, 6)]
    assert lineage["model"].to_list() == names
    assert lineage["parent"].to_list() == [None, *names[:-1]]
    assert lineage["decision"].to_list()[-1] == "pending"
    assert lineage["decision"].to_list()[0] == "promoted"
    assert lineage["jobs"].sum() == jobs.filter(pl.col("submit_s") < FIRST_S + 5 * WEEK_S).height

    folder = checkout.folder / "results/mine/models"
    files = {file.name: file.read_text() for file in folder.iterdir() if not file.name.startswith(".")}
    assert sorted(files) == ["current.json", *(f"{name}.json" for name in names)]
    in_use = lineage["current"][-1]
    assert files["current.json"] == files[f"{in_use}.json"]
    for row in lineage.iter_rows(named=True):
        said = json.loads(files[f"{row['model']}.json"])
        assert (said["decision"], said["parent"]) == (row["decision"], row["parent"])
        assert said["trained_on"]["jobs"] == row["n"]

    # What somebody left in the folder is gone with the next file of the trace, which trains a sixth model.
    (folder / "stale.json").write_text("{}")
    assert checkout.planned("--", LINEAGE, **CONFIG) == set()
    add_week(checkout, jobs, 6)
    planned = checkout.planned("--", LINEAGE, **CONFIG)
    assert {"ingest_part", "merge_parts", "train_model"} <= planned
    checkout.snakemake("--", LINEAGE, one_process=True, **CONFIG)
    after = pl.read_csv(checkout.folder / LINEAGE)
    assert after.height == 6
    tested = [name for name in after.columns if name.startswith("log_loss")]
    assert after["decision"][4] != "pending" and after["decision"][5] == "pending"
    assert after.select("n", *tested).head(4).equals(lineage.select("n", *tested).head(4))
    assert sorted(file.name for file in folder.glob("*.json")) == sorted(
        ["current.json", *(f"{name}.json" for name in names), "part_6_week6.csv.json"]
    )
