"""`ttf score` on the study of the Slurm sample: a file of new jobs, a part, refusals, reproducible bytes."""

import re
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest
import yaml
from sklearn.metrics import average_precision_score
from study_runs import ROOT, Checkout, check_out, copy_study, environment, ttf_command
from ttf.analyses.shared.risk.score import SCORES, SKEW
from ttf.engine.storage.tables import read_table

DOCS = (ROOT / "docs/risk.md").read_text(encoding="utf-8")
EXAMPLE = DOCS.split("```csv\n")[1].split("```")[0]
PART = "2025-b.txt"


@pytest.fixture(scope="module")
def slurm(finished_slurm, tmp_path_factory) -> Checkout:
    """Return the study of the sample. Its manifest protects the models, so no test changes them."""
    checkout = copy_study(finished_slurm, tmp_path_factory.mktemp("score"))
    (checkout.folder / "new_jobs.csv").write_text(EXAMPLE)
    return checkout


def score(study: Checkout, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
    process = study.ttf("score", *arguments)
    if check:
        assert process.returncode == 0, process.stdout + process.stderr
    return process


def scores_path(study: Checkout, stem: str) -> Path:
    return study.folder / "results/sample_slurm/scores" / f"{stem}.csv"


def test_new_jobs_are_scored(slurm):
    stdout = score(slurm, "new_jobs.csv").stdout
    lines = stdout.splitlines()
    assert re.fullmatch(
        r"Failure prediction is weak, not worth acting on: PR-AUC is above the base rate at [23] of 3 origins, but "
        r"trials on one GPU save more than they cost at (none|1) of 3 origins\.",
        lines[0],
    )
    assert [line.split(": submitted ")[0].split("%  ")[-1] for line in lines[-4:-1]] == ["new-2", "new-1", "new-3"]
    assert lines[-5] == "The highest 3 of 3 scores:"
    assert lines[1] == "The trace sample_slurm is synthetic: its scores say nothing of a real cluster."
    model = "Scored: 3 by the model of part 1: 2025-a.txt (history alone); 1 beyond the range of its training"
    assert lines[2].startswith(model)
    assert " in the last test: all jobs 0." in stdout
    scores = read_table(scores_path(slurm, "new_jobs"), SCORES)
    SCORES.check(scores)
    assert scores["job_id"].to_list() == ["new-1", "new-2", "new-3"]
    assert scores["submit"][0] == "2025-03-02T08:00:00+00:00"
    assert scores["beyond_feature"].to_list() == [None, None, "gpus, cpus, memory"]
    assert scores["unseen_user"].to_list() == [False, False, True]
    assert scores["reason_1"][1].startswith("history by user = ")
    # 60% of user10's jobs fail, 30% of all jobs.
    assert scores["probability"][1] > scores["probability"][0]
    SKEW.check(read_table(scores_path(slurm, "new_jobs.skew"), SKEW))


def test_a_part_is_scored_by_the_model_made_before_it(slurm):
    stdout = score(slurm, "--part", PART, "--trace", "sample_slurm").stdout
    assert "by the model of part 1: 2025-a.txt" in stdout
    scores = read_table(scores_path(slurm, "2025-b"), SCORES)
    jobs = pl.read_parquet(slurm.folder / "results/sample_slurm/jobs.parquet").filter(part=PART)
    assert scores["job_id"].sort().equals(jobs["job_id"].sort())
    ended_jobs = scores.join(jobs.select("job_id", "outcome"), on="job_id").filter(
        pl.col("outcome").is_in(["success", "failure", "cancelled", "unknown"])
    )
    failed = (ended_jobs["outcome"] == "failure").to_numpy()
    assert average_precision_score(failed, ended_jobs["probability"]) > 1.4 * failed.mean()
    # The sum of the probabilities is about the number of failures.
    assert ended_jobs["probability"].sum() == pytest.approx(failed.sum(), rel=0.1)
    other_scores = slurm.folder / "other.csv"
    score(slurm, "--part", PART, "--model", "part_1_2025-a.txt", "--out", "other.csv")
    assert other_scores.read_bytes() == scores_path(slurm, "2025-b").read_bytes()


def test_a_job_of_the_trace_is_scored_alike_from_a_file(slurm):
    """Jobs of a file and of jobs.parquet take the same code path."""
    score(slurm, "--part", PART)
    jobs = pl.read_parquet(slurm.folder / "results/sample_slurm/jobs.parquet").filter(part=PART)
    columns = [*EXAMPLE.splitlines()[0].replace("submit,", "submit_s,").split(","), "gpu_type_requested"]
    jobs.select(columns).write_csv(slurm.folder / "again.csv", separator=";")
    score(slurm, "again.csv", "--model", "part 1: 2025-a.txt")
    part_scores, file_scores = (
        read_table(scores_path(slurm, stem), SCORES).sort("job_id") for stem in ("2025-b", "again")
    )
    assert file_scores.equals(part_scores)


def test_the_same_bytes_with_one_thread_and_with_two(slurm):
    contents = set()
    for threads in ("1", "2"):
        command = ttf_command(slurm.folder, "score", "--part", PART)
        subprocess.run(command, cwd=slurm.folder, env=environment() | {"POLARS_MAX_THREADS": threads}, check=True)
        contents.add(tuple(scores_path(slurm, name).read_bytes() for name in ("2025-b", "2025-b.skew")))
    assert len(contents) == 1


def test_an_invalid_file_is_refused_and_nothing_is_written(slurm):
    """Slurm writes allocations after submission. tests/unit/test_score.py tests each refusal."""
    head, first_row, *_ = EXAMPLE.splitlines()
    (slurm.folder / "wrong.csv").write_text(f"{head},gpu_milli\n{first_row},5\n")
    process = score(slurm, "wrong.csv", check=False)
    assert process.returncode == 1
    assert "gpu_milli is written after submission" in process.stderr
    assert len(process.stderr.splitlines()) == 1
    assert process.stdout == ""
    assert not scores_path(slurm, "wrong").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what? ttf score new_jobs.csv, or ttf score --trace name --part name"),
        (("none.csv",), "FILE: none.csv: there is no such file"),
        (("new_jobs.csv", "--trace", "sample"), "--trace 'sample': no study here has that trace"),
        (("new_jobs.csv", "--study", "mine"), "--study mine: there is no such study here"),
        (("new_jobs.csv", "--model", "week 3"), "no model of the window 'week 3'; there: part 1: 2025-a.txt"),
        (("new_jobs.csv", "--out", "new_jobs.csv"), "that would overwrite new_jobs.csv"),
        (("new_jobs.csv", "--out", "scores.txt"), "name a file that ends in .csv"),
        (("--part", "2025-c.txt"), "--part '2025-c.txt': no such part of sample_slurm; did you mean"),
        (("--part", "/\n\u202e" + 5000 * "x"), r"--part '/\n\u202exxx"),
        (("new_jobs.csv", "--out", 5000 * "x" + ".csv"), "cannot be used: File name too long."),
        (("--part", "2025-a.txt"), "no promoted model was made before the part 2025-a.txt"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(slurm, arguments, message):
    process = score(slurm, *arguments, check=False)
    assert process.returncode == 1
    assert message in process.stderr
    assert len(process.stderr.splitlines()) == 1
    assert (slurm.folder / "new_jobs.csv").read_text() == EXAMPLE


@pytest.mark.parametrize("obstacle", ["taken.skew.csv", "taken"])
def test_where_one_table_cannot_be_written_neither_is(slurm, obstacle):
    """A folder blocks the path of the skew, or a file blocks the folder of both tables."""
    obstacle_path = slurm.folder / obstacle
    obstacle_path.mkdir() if obstacle.endswith(".csv") else obstacle_path.write_text("")
    output = "taken.csv" if obstacle.endswith(".csv") else "taken/new.csv"
    process = score(slurm, "new_jobs.csv", "--out", output, check=False)
    assert process.returncode == 1
    assert "taken" in process.stderr
    assert len(process.stderr.splitlines()) == 1
    assert not (slurm.folder / output).exists()
    assert not list(slurm.folder.glob(".taken*"))


def test_a_missing_study_or_evaluation_is_reported(slurm, tmp_path):
    empty = check_out(tmp_path / "empty")
    assert "this folder has no study yet" in score(empty, "x.csv", check=False).stderr
    config = yaml.safe_load((slurm.folder / "results/studies/sample_slurm/config.yaml").read_text())
    entry = {"format": "table", "folder": "raw", "mapping": {"job_id": "id", "status": "state"}}
    undated = empty.folder / "results/studies/undated/config.yaml"
    undated.parent.mkdir(parents=True)
    undated.write_text(yaml.safe_dump(config | {"study": ["undated"], "registry": {"undated": entry}}))
    assert "registry.undated.mapping.submit" in score(empty, "x.csv", check=False).stderr
    shutil.rmtree(empty.folder / "results")
    shutil.copytree(slurm.folder / "results", empty.folder / "results")
    (empty.folder / "new_jobs.csv").write_text(EXAMPLE)
    (empty.folder / "results/sample_slurm/tables/risk_evaluation.csv").unlink()
    stdout = score(empty, "new_jobs.csv").stdout
    assert stdout.startswith("The data cannot say whether failure can be predicted: it was not evaluated")
    shutil.rmtree(empty.folder / "results/sample_slurm/models")
    assert "there is no model yet" in score(empty, "new_jobs.csv", check=False).stderr


@pytest.mark.parametrize(
    ("product", "message"),
    [
        ("models/current.json", "edited since train_model made it. Delete it and run `ttf report`."),
        ("tables/risk_evaluation.csv", "edited since predict_failure made it."),
        ("models/mine.json", "no rule of the study made it. Remove it."),
    ],
)
def test_an_edited_model_scores_nothing(slurm, tmp_path, product, message):
    study = copy_study(slurm, tmp_path)
    file = study.folder / "results/sample_slurm" / product
    text = file.read_text() if file.exists() else (file.parent / "current.json").read_text()
    # The edited model is still consistent in features, terms and coefficients.
    file.write_text(
        re.sub(r'"shift": [-0-9.e]+', '"shift": 2.5', text) if product.startswith("models") else text + "\n"
    )
    process = score(study, "new_jobs.csv", "--out", "mine.csv", check=False)
    assert process.returncode == 1 and process.stdout == ""
    assert f"results/sample_slurm/{product}: {message}" in process.stderr
    assert "edited or out of date, so no job is scored" in process.stderr
    assert len(process.stderr.splitlines()) == 1
    assert not (study.folder / "mine.csv").exists()


def test_without_a_manifest_nothing_is_scored(slurm, tmp_path):
    study = copy_study(slurm, tmp_path)
    (study.folder / "results/studies/sample_slurm/manifest.json").unlink()
    process = score(study, "new_jobs.csv", check=False)
    assert (process.returncode, process.stdout) == (1, "")
    assert "there is no manifest yet. Run `ttf report`, which writes it." in process.stderr


def test_the_docs_name_every_column():
    for table in (SCORES, SKEW):
        undocumented = [name for name in table.columns if f"`{name}`" not in DOCS and not name.startswith("reason_")]
        assert not undocumented


def test_next_requests_are_columns_of_the_scores(slurm):
    """Jobs like those that ended at their limit get the suggestion of the table, a newcomer gets none."""
    folder = slurm.folder / "results/sample_slurm"
    rows = pl.read_csv(folder / "tables/suggested_time_limits.csv").drop_nulls("suggested_s")
    user = rows["user"][0]
    record = pl.read_parquet(folder / "jobs.parquet").filter(user=user, status_raw="TIMEOUT")
    requests = ["account", "partition", "qos", "timelimit_s", "gpu_requested_milli", "gpu_type_requested"]
    requests += ["cpu_requested_milli", "mem_requested_mib"]
    # After the last end of the trace, so that all its jobs that ended count, as in the table.
    submit_s = record["trace_end_s"].max() + 1
    new = record.select("job_id", "user", *requests).with_columns(submit_s=submit_s)
    new = pl.concat([new, new.head(1).with_columns(job_id=pl.lit("newcomer"), user=pl.lit("newcomer"))])
    new.write_csv(slurm.folder / "next.csv")
    score(slurm, "next.csv")
    scores = read_table(scores_path(slurm, "next"), SCORES)
    suggested = scores.drop_nulls("suggested_time_limit_s")
    in_table = rows.filter(user=user)["suggested_s"]
    assert suggested.height and set(suggested["suggested_time_limit_s"]) <= set(in_table)
    newcomer = scores.filter(job_id="newcomer")
    assert newcomer["suggested_time_limit_s"].to_list() == newcomer["suggested_memory_mib"].to_list() == [None]
