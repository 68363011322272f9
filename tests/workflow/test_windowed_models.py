"""A trace with one file per week: each week's model continues the previous one and is tested on the next."""

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
    """Write the jobs submitted in a week, counted from 1, as one table."""
    (study.folder / "weeks").mkdir(exist_ok=True)
    week_jobs = jobs.filter((pl.col("submit_s") - FIRST_S) // WEEK_S == number - 1)
    week_jobs.select(**COLUMNS).write_csv(study.folder / f"weeks/week{number}.csv")


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
    current_model = lineage["current"][-1]
    assert files["current.json"] == files[f"{current_model}.json"]
    for row in lineage.iter_rows(named=True):
        model = json.loads(files[f"{row['model']}.json"])
        assert (model["decision"], model["parent"]) == (row["decision"], row["parent"])
        assert model["trained_on"]["jobs"] == row["n"]

    # The next file of the trace trains a sixth model and removes foreign files.
    (folder / "stale.json").write_text("{}")
    add_week(checkout, jobs, 6)
    checkout.snakemake("--", LINEAGE, one_process=True, **CONFIG)
    lineage_after = pl.read_csv(checkout.folder / LINEAGE)
    assert lineage_after.height == 6
    log_loss_columns = [name for name in lineage_after.columns if name.startswith("log_loss")]
    assert lineage_after["decision"][4] != "pending" and lineage_after["decision"][5] == "pending"
    assert lineage_after.select("n", *log_loss_columns).head(4).equals(lineage.select("n", *log_loss_columns).head(4))
    assert sorted(file.name for file in folder.glob("*.json")) == sorted(
        ["current.json", *(f"{name}.json" for name in names), "part_6_week6.csv.json"]
    )
