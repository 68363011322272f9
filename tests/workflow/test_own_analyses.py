"""Run the examples of docs/CONTRIBUTING.md verbatim: an analysis and a finding outside the checkout."""

import re
import subprocess
from pathlib import Path

import polars as pl
import pytest
import yaml
from contributing_recipe import FINDINGS, RECIPE, write_example
from study_runs import OWN, PAGE, SMALL, clone, clone_environment

# An analysis that continues from its previous table.
COUNT_RUNS = {
    "__init__.py": """
from ttf.analyses.declaration import Analysis
from ttf.engine.contract import count, parquet

RUNS = parquet("run_count", "How often the analysis ran.", "run_count.parquet", runs=count("Runs", "So far."))
ANALYSIS = Analysis("How often did this run?", "quality", needs=["jobs"], tables=[RUNS], updated=["run_count"])
""",
    "compute.py": """
import polars as pl


def compute(inputs):
    last = inputs.previous.get("run_count")
    return {"run_count": pl.DataFrame({"runs": [1 + (0 if last is None else last["runs"].item())]})}
""",
}


def write_claims(file: Path, **changes: str) -> None:
    document = yaml.safe_load(FINDINGS)
    document["claims"][0]["of"] = "sample"
    document["claims"][0]["quantity"] |= changes
    file.write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.fixture
def example(study, tmp_path):
    """Return a finished study and a configuration with the examples, which are outside its checkout."""
    write_example(tmp_path)
    (tmp_path / "my/analyses").rename(tmp_path / "mine")
    assert 1 < len([*(tmp_path / "mine/describe_weekdays").iterdir()]) <= 5
    write_claims(tmp_path / "findings.yaml")
    return study, SMALL | {"analyses": ["../mine"], "claims": ["../findings.yaml"]}


def test_the_recipe_runs_as_typed_beside_a_study_of_the_sample(study):
    checkout = clone(study.folder)
    write_example(checkout)
    with (checkout / "weekdays.yaml").open("a") as file:
        file.write("claims: [findings.yaml]\n")
    (checkout / "findings.yaml").write_text(FINDINGS)
    (command,) = re.findall(r"^```sh\n(.*?)^```$", RECIPE, re.DOTALL | re.MULTILINE)
    env = clone_environment(checkout)
    process = subprocess.run(
        ["bash", "-ec", command], cwd=checkout, env=env, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    (page,) = re.findall(r"`(results/\S+\.html)`", RECIPE)
    assert f"The report: {page}" in process.stderr
    assert 'id="sec-weekdays"' in (checkout / page).read_text(encoding="utf-8")
    scored = pl.read_csv((checkout / page).parents[1] / "scorecard.csv").filter(id="mine-failures")
    assert scored["verdict"].to_list() == ["reproduced"]


def test_the_example_runs_from_outside_the_checkout(example, tmp_path):
    study, config = example
    hashes_before = study.hashes()
    planned = study.planned(**config)
    assert planned == {
        *("describe_weekdays", "draw_charts_pai2020", "summarise", "score_claims", "write_config"),
        "write_dictionary",
        *("write_page_source", "render_page", "write_manifest"),
    }
    study.snakemake(one_process=True, **config)
    table = pl.read_csv(study.folder / "results/sample/tables/failures_by_weekday.csv")
    jobs = pl.read_parquet(study.folder / "results/sample/jobs.parquet")
    ended_jobs = jobs.filter(pl.col("outcome").is_in(["success", "failure"]) & pl.col("submit_s").is_not_null())
    assert table["ended"].sum() == ended_jobs.height > 0
    assert table["failures"].sum() == (ended_jobs["outcome"] == "failure").sum()
    page = (study.folder / PAGE).read_text(encoding="utf-8")
    fold = page.partition('id="outcomes-details"')[2].partition('<section id="causes"')[0]
    for anchor in ("sec-weekdays", "table-failures_by_weekday", "chart-failures-by-weekday"):
        assert f'id="{anchor}"' in fold, "in the fold of its theme"
    claim = pl.read_csv(study.folder / f"{OWN}/scorecard.csv").row(
        by_predicate=pl.col("id") == "mine-failures", named=True
    )
    assert float(claim["computed"]) == table.filter(weekday="Monday")["failures"].item()
    # Tables of other analyses are unchanged, and nothing is left to do but for an edited section.
    unchanged_tables = [name for name in hashes_before if "/tables/" in name]
    assert {name: study.hashes()[name] for name in unchanged_tables} == {
        name: hashes_before[name] for name in unchanged_tables
    }
    section = tmp_path / "mine/describe_weekdays/weekdays.qmd"
    section.write_text(section.read_text(encoding="utf-8") + "\nOne more sentence.\n", encoding="utf-8")
    assert study.planned(**config) == {"write_page_source", "render_page", "write_manifest"}


def test_an_analysis_of_ones_own_goes_on_from_its_last_table(study, tmp_path):
    (tmp_path / "mine/count_runs").mkdir(parents=True)
    for name, text in COUNT_RUNS.items():
        (tmp_path / "mine/count_runs" / name).write_text(text, encoding="utf-8")
    config, table = SMALL | {"analyses": ["../mine"]}, study.folder / "results/sample/run_count.parquet"

    def runs(*options: str) -> int:
        study.snakemake(*options, one_process=True, **config)
        return pl.read_parquet(table)["runs"].item()

    again = ("--forcerun", "count_runs", "--", "results/sample/run_count.parquet")
    assert runs() == 1
    pl.DataFrame({"runs": [40]}).write_parquet(table)
    assert runs(*again) == 1, "an edited table is not used"
    assert runs(*again) == 2


def test_a_name_that_is_taken_names_both_folders(example, tmp_path):
    study, config = example
    (tmp_path / "mine/describe_weekdays").rename(tmp_path / "mine/describe_states")
    process = study.snakemake("--dry-run", check=False, **config)
    assert process.returncode == 1
    message = process.stdout + process.stderr
    assert "two analyses are called describe_states" in message
    assert "scripts/ttf/analyses/outcomes/describe_states" in message
    assert "../mine/describe_states" in message
    assert "Traceback" not in message


def test_a_finding_that_asks_for_what_no_table_has_is_refused(example, tmp_path):
    study, config = example
    write_claims(tmp_path / "findings.yaml", column="failure")
    process = study.snakemake("--dry-run", check=False, **config)
    assert process.returncode == 1
    message = "claims.mine-failures: table failures_by_weekday has no column failure; did you mean failures?"
    assert f"../findings.yaml: {message}" in process.stdout + process.stderr
