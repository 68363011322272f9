"""A rerun does only what is needed; a killed run resumes and gives the same bytes."""

import os
import shlex
import signal
import subprocess
import time

import psutil
import pytest
from planned_jobs import plan_jobs
from study_runs import SMALL, Checkout, environment, read_planned, ttf_command
from ttf.analyses.catalogue import load_analyses

REPORT = {"write_page_source", "render_page", "write_manifest"}
# An analysis with every part; no other analysis reads its tables.
EXAMPLE = "estimate_hazards"
EXAMPLE_FOLDER = f"scripts/ttf/analyses/factors/{EXAMPLE}"


@pytest.fixture(scope="module")
def jobs(study_of_module):
    study_of_module.planned(**SMALL)
    return plan_jobs(study_of_module, "my.yaml")


@pytest.fixture(scope="module")
def with_downstream_rules(jobs):
    """Return a function that adds all rules that directly or indirectly read the outputs of rules."""

    def add_readers(*rules: str) -> set[str]:
        outputs = {path for job in jobs if job.rule in rules for path in job.outputs}
        readers = {job.rule for job in jobs if outputs.intersection(job.inputs)} - {*rules}
        return add_readers(*rules, *readers) if readers else {*rules}

    return add_readers


@pytest.fixture(scope="module")
def rules_by_module(jobs):
    return lambda file: {job.rule for job in jobs if file in job.code}


def drawing_rules(jobs) -> set[str]:
    return {job.rule for job in jobs if job.script == "draw_charts"}


def computing_rules(jobs) -> set[str]:
    return {job.rule for job in jobs} - drawing_rules(jobs) - REPORT - {"write_page_template"}


def test_second_run_has_nothing_to_do(finished_study):
    assert finished_study.planned(**SMALL) == set()


# Text to append to a declaration.
NEW_COLUMN = """
from ttf.engine.contract import number
ANALYSIS.tables[0].columns["more"] = number("More", "A new column.")
"""
OTHER_WORDS = """
from dataclasses import replace as _replace
for _name, _column in ANALYSIS.tables[0].columns.items():
    ANALYSIS.tables[0].columns[_name] = _replace(_column, heading="Another", description="Another sentence.")
"""
NOT_INSTALLED = """
def _pandoc():
    raise ModuleNotFoundError("pypandoc")
"""


def test_a_new_column_plans_its_analysis_and_what_reads_its_tables(study_of_module, jobs):
    """The plan has exactly the analyses that directly or indirectly declare one of its tables."""
    declarations, planned = load_analyses(), {"fit_mttf"}
    for _ in declarations:
        tables = {table.name for name in planned for table in declarations[name].tables}
        planned |= {
            name for name, declaration in declarations.items() if tables & {*declaration.needs, *declaration.uses}
        }
    planned &= {job.rule for job in jobs}
    assert len(planned) == 4
    declaration = f"scripts/ttf/analyses/{declarations['fit_mttf'].theme}/fit_mttf/__init__.py"
    with study_of_module.appended(declaration, text=NEW_COLUMN):
        expected = {*planned, *drawing_rules(jobs), "summarise", "score_claims", "write_dictionary", *REPORT}
        assert study_of_module.planned(**SMALL) == expected


def test_words_of_a_contract_and_of_a_section_plan_the_report_and_the_dictionary_alone(study_of_module):
    """Also where only the jobs have Pandoc, with --sdm conda."""
    with (
        study_of_module.appended(f"{EXAMPLE_FOLDER}/__init__.py", text=OTHER_WORDS),
        study_of_module.appended(f"{EXAMPLE_FOLDER}/hazards.qmd"),
        study_of_module.appended("scripts/ttf/page/render/render.py", text=NOT_INSTALLED),
    ):
        assert study_of_module.planned(**SMALL) == {"write_dictionary", *REPORT}


def test_an_edited_theme_plans_no_rule_that_computes(study_of_module, jobs):
    with study_of_module.appended("scripts/ttf/display/charts/theme.py"):
        planned = study_of_module.planned(**SMALL)
    assert drawing_rules(jobs) <= planned
    assert not planned & computing_rules(jobs)


def test_an_edited_part_of_an_analysis_reruns_what_it_is_for(jobs, rules_by_module):
    rules_by_part = {
        "compute": {EXAMPLE},
        "charts": drawing_rules(jobs),
        "numbers": {"summarise"},
        "page": {"write_page_source"},
    }
    assert {part: rules_by_module(f"{EXAMPLE_FOLDER}/{part}.py") for part in rules_by_part} == rules_by_part


def test_an_edited_module_that_several_share_reruns_all_of_them(
    study_of_module, rules_by_module, with_downstream_rules
):
    file = "scripts/ttf/stats/durations/mttf.py"
    assert len(rules_by_module(file)) > 1
    with study_of_module.appended(file):
        process = study_of_module.snakemake("--dry-run", **SMALL)
    assert {*read_planned(process)} == with_downstream_rules(*rules_by_module(file))
    assert "Params have changed since last execution" in process.stdout


def test_edited_files_beside_the_modules_rerun_their_rules(study_of_module, with_downstream_rules):
    """A script and a published finding; test_rules.py tests which rules read which file."""
    unread = ("report/comparison.html", "report/paper.typ")  # this study has no such pages
    with study_of_module.appended("scripts/write_page_template.py", "config/claims.yaml", *unread):
        expected = with_downstream_rules("write_page_template", "score_claims", "write_manifest")
        assert study_of_module.planned(**SMALL) == expected


REVERSED = """
import ttf.analyses.catalogue
from ttf.analyses.catalogue import find_analysis_folders
def _reversed(folders=()):
    return dict(reversed(find_analysis_folders(folders).items()))
ttf.analyses.catalogue.find_analysis_folders = _reversed
"""


def test_what_a_study_does_not_use_comments_and_the_order_of_analyses_rerun_nothing_but_the_manifest(
    study_of_module, jobs
):
    """Nor do touched files and edits taken back. The manifest lists every file of the workflow."""
    commented = (f"{EXAMPLE_FOLDER}/hazard_ratios.py", "scripts/compute.py", "scripts/ttf/stats/durations/mttf.py")
    for file in ("data/sample/pai_task_table.csv", "scripts/ttf/records/durations.py", "report/page/page.css"):
        (study_of_module.folder / file).touch()
    used = {file for job in jobs for file in job.code} | {f"scripts/{job.script}.py" for job in jobs}
    scripts = study_of_module.folder / "scripts"
    modules = {str(file.relative_to(study_of_module.folder)) for file in scripts.rglob("*.py")}
    declarations = {
        f"scripts/ttf/analyses/{analysis.theme}/{name}/__init__.py" for name, analysis in load_analyses().items()
    }
    unused = modules - used - declarations
    assert any("openb" in file or "philly" in file for file in unused)
    others = ("config/taxonomy.yaml", "scripts/ttf/formats/openb.yaml", "README.md")
    with (
        study_of_module.appended(*unused, *others),
        study_of_module.appended(*commented, text="\n\n# A comment.\n"),
        study_of_module.appended("scripts/ttf/study/study.py", text=REVERSED),
    ):
        assert study_of_module.planned(**SMALL) == {"write_manifest"}


# Keys of three rules or none, and another title of another trace. tests/unit/test_study.py tests which analyses read
# which key, test_rules.py that the readers of raw tables have their schema.
CHANGED = {
    "correlation": {"significance": 0.01},
    "infra_failures": {"states": ["Failed"]},
    "ettr": {"run_key": ["user"]},  # of traces that tell attempts apart
    "registry": {"sample": {"title": "Another title"}, "openb": {"title": "Another title"}},
}


def test_changed_keys_rerun_what_reads_them(study_of_module, with_downstream_rules):
    planned = study_of_module.planned(**SMALL | CHANGED)
    expected = {"correlate", "repeat_study", "summarise", "write_page_source", "derive_infra_durations"}
    assert planned == with_downstream_rules("write_config", *expected)


def test_the_limit_of_quarantined_rows_is_a_parameter_of_the_rule_that_reads_them(jobs):
    assert {job.rule for job in jobs if "max_share" in job.params} == {"ingest"}


def test_edited_raw_file_reruns_its_trace(study_of_module, with_downstream_rules):
    with study_of_module.appended("data/sample/pai_sensor_table.csv"):
        assert study_of_module.planned(**SMALL) == with_downstream_rules("ingest", "describe_tables")


def start_run(checkout: Checkout, *arguments: str) -> subprocess.Popen:
    command = ttf_command(
        checkout.folder, "report", "--config=my.yaml", "--cores=1", f"--snakemake={shlex.join(arguments)}"
    )
    return subprocess.Popen(command, cwd=checkout.folder, stderr=subprocess.PIPE, text=True, env=environment())


def test_a_run_killed_twice_and_robbed_of_a_table_goes_on_to_the_same_bytes(checkout: Checkout, finished_study):
    checkout.snakemake("--dry-run", **SMALL)
    table = "results/sample/tables/correlations.csv"
    # Stop at a table derived from that one, and at the one that is robbed.
    arguments = ("--", "results/sample/tables/study1.csv", "results/sample/nodes.parquet")
    for product in ("results/sample/raw", table):
        run = start_run(checkout, *arguments)
        deadline = time.monotonic() + 120
        while not (checkout.folder / product).exists() and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        (snakemake,) = psutil.Process(run.pid).children()
        os.killpg(snakemake.pid, signal.SIGKILL)
        run.communicate()
        assert run.returncode == 128 + signal.SIGKILL, "the run ended before it could be killed"
        assert [*(checkout.folder / ".snakemake/locks").iterdir()], "the lock of Snakemake, which a rerun removes"
    (checkout.folder / "results/sample/nodes.parquet").unlink()
    run = start_run(checkout, *arguments)
    output = run.communicate()[1]
    assert run.returncode == 0, output
    expected, hashes = finished_study.hashes(), checkout.hashes()
    assert {"sample/tables/study1.csv", "sample/nodes.parquet"} <= hashes.keys()
    assert hashes == {name: expected[name] for name in hashes}
