"""`make score` on the study of the Slurm sample: a file of new jobs, a part, what is refused, the same bytes."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from sklearn.metrics import average_precision_score
from study_runs import ROOT, Checkout, check_out, copied, environment
from ttf.analyses.shared.risk.score import SCORES, SKEW
from ttf.engine.storage.tables import read_table

DOCS = (ROOT / "docs/risk.md").read_text(encoding="utf-8")
EXAMPLE = DOCS.split("```csv\n")[1].split("```")[0]
PART = "2025-b.txt"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Checkout:
    """The study of the sample, whose manifest tells whether its models are as they were made; no test changes them."""
    checkout = check_out(tmp_path_factory.mktemp("score") / "checkout")
    checkout.snakemake(one_process=True, study=["sample_slurm"])
    (checkout.folder / "new_jobs.csv").write_text(EXAMPLE)
    return checkout


def score(study: Checkout, *arguments: str, threads: int = 1, check: bool = True) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [sys.executable, "scripts/score_jobs.py", *arguments],
        cwd=study.folder,
        env=environment() | {"POLARS_MAX_THREADS": str(threads)},
        capture_output=True,
        text=True,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def scores_in(study: Checkout, stem: str) -> Path:
    return study.folder / "results/sample_slurm/scores" / f"{stem}.csv"


def test_new_jobs_are_scored(slurm):
    said = score(slurm, "--file", "new_jobs.csv").stdout
    lines = said.splitlines()
    assert re.match(
        r"Failure prediction is weak, not worth acting on: PR-AUC of (history alone|logistic regression) is above the "
        r"share of failures at [23] of 3 tested origins;",
        lines[0],
    )
    assert lines[1] == "The trace sample_slurm is synthetic: its scores say nothing of a real cluster."
    model = "Scored: 3 by the model of part 1: 2025-a.txt (history alone); 1 beyond the range of its training"
    assert lines[2].startswith(model)
    assert " in the last test: all jobs 0." in said
    found = read_table(scores_in(slurm, "new_jobs"), SCORES)
    SCORES.check(found)
    assert found["job_id"].to_list() == ["new-1", "new-2", "new-3"]
    assert found["beyond_feature"].to_list() == [None, None, "gpus, cpus, memory"]
    assert found["unseen_user"].to_list() == [False, False, True]
    assert found["reason_1"][1].startswith("history by user = ")
    # Six in ten of user10's jobs fail, three in ten of all.
    assert found["probability"][1] > found["probability"][0]
    SKEW.check(read_table(scores_in(slurm, "new_jobs.skew"), SKEW))


def test_a_part_is_scored_by_the_model_made_before_it(slurm):
    said = score(slurm, "--part", PART, "--trace", "sample_slurm").stdout
    assert "by the model of part 1: 2025-a.txt" in said
    scores = read_table(scores_in(slurm, "2025-b"), SCORES)
    jobs = pl.read_parquet(slurm.folder / "results/sample_slurm/jobs.parquet").filter(part=PART)
    assert scores["job_id"].sort().equals(jobs["job_id"].sort())
    ended = scores.join(jobs.select("job_id", "outcome"), on="job_id").filter(
        pl.col("outcome").is_in(["success", "failure", "cancelled", "unknown"])
    )
    failed = (ended["outcome"] == "failure").to_numpy()
    assert average_precision_score(failed, ended["probability"]) > 1.4 * failed.mean()
    # The probabilities add up to about the failures that came.
    assert ended["probability"].sum() == pytest.approx(failed.sum(), rel=0.1)
    other = slurm.folder / "other.csv"
    score(slurm, "--part", PART, "--model", "part_1_2025-a.txt", "--out", "other.csv")
    assert other.read_bytes() == scores_in(slurm, "2025-b").read_bytes()


def test_a_job_of_the_trace_is_scored_alike_from_a_file(slurm):
    """What a file says of a job, and what jobs.parquet does, go through the same code."""
    score(slurm, "--part", PART)
    jobs = pl.read_parquet(slurm.folder / "results/sample_slurm/jobs.parquet").filter(part=PART)
    columns = [*EXAMPLE.splitlines()[0].replace("submit,", "submit_s,").split(","), "gpu_type_requested"]
    jobs.select(columns).write_csv(slurm.folder / "again.csv", separator=";")
    score(slurm, "--file", "again.csv", "--model", "part 1: 2025-a.txt")
    part, again = (read_table(scores_in(slurm, stem), SCORES).sort("job_id") for stem in ("2025-b", "again"))
    assert again.equals(part)


@pytest.mark.parametrize(
    ("arguments", "stem"), [(("--file", "new_jobs.csv"), "new_jobs"), (("--part", PART), "2025-b")]
)
def test_the_same_bytes_with_one_thread_and_with_two(slurm, arguments, stem):
    written = set()
    for threads in (1, 2):
        score(slurm, *arguments, threads=threads)
        written.add(tuple(scores_in(slurm, name).read_bytes() for name in (stem, f"{stem}.skew")))
    assert len(written) == 1


def test_a_file_that_is_not_so_is_refused_and_nothing_is_written(slurm):
    """What Slurm allocated is written after submission, what was requested is not; each refusal: test_score.py."""
    head, first, *_ = EXAMPLE.splitlines()
    (slurm.folder / "wrong.csv").write_text(f"{head},gpu_milli\n{first},5\n")
    done = score(slurm, "--file", "wrong.csv", check=False)
    assert done.returncode == 1
    assert "gpu_milli is written after submission" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert not scores_in(slurm, "wrong").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what? make score FILE=new_jobs.csv, or make score PART=name TRACE=name"),
        (("--file", "new_jobs.csv", "--part", PART), "what? make score"),
        (("--file", "none.csv"), "FILE: none.csv: there is no such file"),
        (("--file", "new_jobs.csv", "--trace", "sample"), "TRACE=sample: no study here has that trace"),
        (("--file", "new_jobs.csv", "--study", "mine"), "STUDY=mine: there is no such study here"),
        (("--file", "new_jobs.csv", "--model", "week 3"), "no model of the window 'week 3'; there: part 1: 2025-a.txt"),
        (("--file", "new_jobs.csv", "--out", "new_jobs.csv"), "that would overwrite FILE=new_jobs.csv"),
        (("--file", "new_jobs.csv", "--out", "scores.txt"), "name a file that ends in .csv"),
        (("--part", "2025-c.txt"), "PART=2025-c.txt: no such part of sample_slurm; did you mean"),
        (("--part", "2025-a.txt"), "no promoted model was made before the part 2025-a.txt"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(slurm, arguments, message):
    done = score(slurm, *arguments, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert (slurm.folder / "new_jobs.csv").read_text() == EXAMPLE


@pytest.mark.parametrize("taken", ["taken.skew.csv", "taken"])
def test_where_one_table_cannot_be_written_neither_is(slurm, taken):
    """A folder stands where the skew would, or a file where the folder of both would."""
    place = slurm.folder / taken
    place.mkdir() if taken.endswith(".csv") else place.write_text("")
    out = "taken.csv" if taken.endswith(".csv") else "taken/new.csv"
    done = score(slurm, "--file", "new_jobs.csv", "--out", out, check=False)
    assert done.returncode == 1
    assert "taken" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (slurm.folder / out).exists()
    assert not list(slurm.folder.glob(".taken*"))


def test_without_study_or_evaluation_it_says_so(slurm, tmp_path):
    empty = check_out(tmp_path / "empty")
    assert "this folder has no study yet" in score(empty, "--file", "x.csv", check=False).stderr
    shutil.copytree(slurm.folder / "results", empty.folder / "results")
    (empty.folder / "new_jobs.csv").write_text(EXAMPLE)
    (empty.folder / "results/sample_slurm/tables/risk_evaluation.csv").unlink()
    said = score(empty, "--file", "new_jobs.csv").stdout
    assert said.startswith("The data cannot say whether failure can be predicted: it was not evaluated")
    shutil.rmtree(empty.folder / "results/sample_slurm/models")
    assert "there is no model yet" in score(empty, "--file", "new_jobs.csv", check=False).stderr


@pytest.mark.parametrize(
    ("product", "said"),
    [
        ("models/current.json", "edited since train_model made it. Delete it and run `make report`."),
        ("models/part_1_2025-a.txt.json", "edited since train_model made it."),
        ("tables/risk_evaluation.csv", "edited since predict_failure made it."),
        ("models/mine.json", "no rule of the study made it. Remove it."),
    ],
)
def test_an_edited_model_scores_nothing(slurm, tmp_path, product, said):
    study = copied(slurm, tmp_path)
    file = study.folder / "results/sample_slurm" / product
    text = file.read_text() if file.exists() else (file.parent / "current.json").read_text()
    # A model whose features, terms and coefficients still go together.
    file.write_text(
        re.sub(r'"shift": [-0-9.e]+', '"shift": 2.5', text) if product.startswith("models") else text + "\n"
    )
    done = score(study, "--file", "new_jobs.csv", "--out", "mine.csv", check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert f"results/sample_slurm/{product}: {said}" in done.stderr
    assert "edited or out of date, so no job is scored" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (study.folder / "mine.csv").exists()


def test_without_a_manifest_nothing_is_scored(slurm, tmp_path):
    study = copied(slurm, tmp_path)
    (study.folder / "results/studies/sample_slurm/manifest.json").unlink()
    done = score(study, "--file", "new_jobs.csv", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no manifest yet. Run `make report`, which writes it." in done.stderr


def test_the_docs_name_every_column():
    for table in (SCORES, SKEW):
        missing = [name for name in table.columns if f"`{name}`" not in DOCS and not name.startswith("reason_")]
        assert not missing
