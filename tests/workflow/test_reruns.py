"""A rerun does only what is needed; a killed run resumes and gives the same bytes."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from planned_jobs import plan_jobs
from study_runs import SMALL, Checkout, environment, write_quarto
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


@pytest.mark.parametrize("analysis", [EXAMPLE, "fit_mttf"])
def test_a_new_column_plans_its_analysis_and_what_reads_its_tables(
    study_of_module, jobs, with_downstream_rules, analysis
):
    """The plan has exactly the analyses that directly or indirectly declare one of its tables."""
    declarations, planned = load_analyses(), {analysis}
    for _ in declarations:
        tables = {table.name for name in planned for table in declarations[name].tables}
        planned |= {
            name for name, declaration in declarations.items() if tables & {*declaration.needs, *declaration.uses}
        }
    planned &= {job.rule for job in jobs}
    assert len(planned) == {EXAMPLE: 2, "fit_mttf": 4}[analysis]
    with study_of_module.appended(
        f"scripts/ttf/analyses/{declarations[analysis].theme}/{analysis}/__init__.py", text=NEW_COLUMN
    ):
        expected = {*planned, *drawing_rules(jobs), "summarise", "write_dictionary", *REPORT}
        assert study_of_module.planned(**SMALL) == expected


def test_a_heading_or_a_sentence_of_a_contract_plans_the_report_and_the_dictionary_alone(study_of_module):
    with study_of_module.appended(f"{EXAMPLE_FOLDER}/__init__.py", text=OTHER_WORDS):
        assert study_of_module.planned(**SMALL) == {"write_dictionary", *REPORT}


def test_an_edited_sentence_of_a_section_plans_the_report_alone(study_of_module):
    for template in (f"{EXAMPLE_FOLDER}/hazards.qmd", "report/sections/methods.qmd"):
        with study_of_module.appended(template):
            assert study_of_module.planned(**SMALL) == REPORT


def test_an_edited_theme_plans_no_rule_that_computes(study_of_module, jobs):
    with study_of_module.appended("scripts/ttf/display/charts/theme.py"):
        planned = study_of_module.planned(**SMALL)
    assert drawing_rules(jobs) <= planned
    assert not planned & computing_rules(jobs)


@pytest.mark.parametrize("part", ["compute", "charts", "numbers", "page"])
def test_an_edited_part_of_an_analysis_reruns_what_it_is_for(study_of_module, jobs, with_downstream_rules, part):
    rules_by_part = {
        "compute": {EXAMPLE},
        "charts": drawing_rules(jobs),
        "numbers": {"summarise"},
        "page": {"write_page_source"},
    }
    with study_of_module.appended(f"{EXAMPLE_FOLDER}/{part}.py"):
        assert study_of_module.planned(**SMALL) == with_downstream_rules(*rules_by_part[part])


@pytest.mark.parametrize("file", ["scripts/ttf/stats/durations/mttf.py", "scripts/ttf/records/durations.py"])
def test_an_edited_module_that_several_share_reruns_all_of_them(
    study_of_module, jobs, rules_by_module, with_downstream_rules, file
):
    assert len(rules_by_module(file)) > 1
    with study_of_module.appended(file):
        assert study_of_module.planned(**SMALL) == with_downstream_rules(*rules_by_module(file))


def test_edited_files_beside_the_modules_rerun_their_rules(study_of_module, with_downstream_rules):
    """A script, a style, a published finding; the schema of the raw tables reruns everything."""
    with study_of_module.appended("scripts/bundle_vega.py"):
        assert study_of_module.planned(**SMALL) == with_downstream_rules("bundle_vega", "write_manifest")
    for part in ("page.css", "planner.js"):
        with study_of_module.appended(f"report/page/{part}"):
            assert study_of_module.planned(**SMALL) == {"write_page_template", "render_page", "write_manifest"}
    with study_of_module.appended("report/comparison.html", "report/paper.typ"):
        assert study_of_module.planned(**SMALL) == {"write_manifest"}, "this study has no such pages"
    with study_of_module.appended("config/claims.yaml"):
        assert study_of_module.planned(**SMALL) == {"score_claims", *REPORT}
    with study_of_module.appended(
        "scripts/ttf/formats/pai2020/format.yaml", text="        - {name: more, type: text}\n"
    ):
        assert study_of_module.planned(**SMALL) == with_downstream_rules("ingest", "describe_tables")


def test_a_plan_tells_that_a_module_was_edited_and_a_comment_plans_nothing(study_of_module):
    for file in (f"{EXAMPLE_FOLDER}/cox.py", "scripts/compute.py", "scripts/ttf/stats/durations/mttf.py"):
        with study_of_module.appended(file, text="\n\n# A comment.\n"):
            assert study_of_module.planned(**SMALL) == set()
    with study_of_module.appended(f"{EXAMPLE_FOLDER}/cox.py"):
        output = study_of_module.snakemake("--dry-run", **SMALL).stdout
    assert f"rule {EXAMPLE}:" in output and "Params have changed since last execution" in output


def test_edited_files_that_the_study_does_not_use_rerun_nothing_but_the_manifest(study_of_module, jobs):
    used = {file for job in jobs for file in job.code} | {f"scripts/{job.script}.py" for job in jobs}
    scripts = study_of_module.folder / "scripts"
    modules = {str(file.relative_to(study_of_module.folder)) for file in scripts.rglob("*.py")}
    declarations = {
        f"scripts/ttf/analyses/{analysis.theme}/{name}/__init__.py" for name, analysis in load_analyses().items()
    }
    unused = modules - used - declarations
    assert any("openb" in file or "philly" in file for file in unused)
    with study_of_module.appended(*unused, "config/taxonomy.yaml", "scripts/ttf/formats/openb.yaml", "README.md"):
        assert study_of_module.planned(**SMALL) == {"write_manifest"}


def test_another_renderer_renders_the_pages_again(study_of_module, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", write_quarto(tmp_path))
    assert study_of_module.planned(**SMALL) == {"render_page", "write_manifest"}


NOT_INSTALLED = """
def _pandoc():
    raise ModuleNotFoundError("pypandoc")
"""


def test_a_study_is_planned_where_only_its_jobs_have_pandoc(study_of_module):
    """This happens with --sdm conda."""
    with study_of_module.appended("scripts/ttf/page/render/render.py", text=NOT_INSTALLED):
        assert study_of_module.planned(**SMALL) == {"render_page", "write_manifest"}


REVERSED = """
import ttf.analyses.catalogue
from ttf.analyses.catalogue import find_analysis_folders
def _reversed(folders=()):
    return dict(reversed(find_analysis_folders(folders).items()))
ttf.analyses.catalogue.find_analysis_folders = _reversed
"""


def test_the_order_in_which_analyses_are_found_makes_no_product_anew(study_of_module):
    with study_of_module.appended("workflow/study/study.py", text=REVERSED):
        assert study_of_module.planned(**SMALL) == {"write_manifest"}, "the manifest lists every file of the workflow"


def config_with(**changes) -> dict:
    return {**SMALL, **changes}


# Key -> a configuration with another value, and the rules that read the key. tests/unit/test_study.py tests which
# analyses read which key.
CHANGED_KEYS = {
    "correlation.significance": (
        config_with(correlation={"significance": 0.01}),
        {"correlate", "repeat_study", "write_page_source"},
    ),
    "ettr.run_key, of traces that tell attempts apart": (config_with(ettr={"run_key": ["user"]}), set()),
    "infra_failures.states": (config_with(infra_failures={"states": ["Failed"]}), {"derive_infra_durations"}),
    "quarantine.max_share": (config_with(quarantine={"max_share": 0.5}), {"ingest"}),
    "registry.sample.title": (
        config_with(registry={"sample": {"title": "Another title"}}),
        {"summarise", "write_page_source"},
    ),
}


@pytest.mark.parametrize("key", CHANGED_KEYS)
def test_changed_key_reruns_what_reads_it(study_of_module, with_downstream_rules, key):
    config, rules = CHANGED_KEYS[key]
    assert study_of_module.planned(**config) == with_downstream_rules("write_config", *rules)


def test_changed_registry_of_another_trace_reruns_nothing(study_of_module):
    registry = {"sample": {}, "openb": {"title": "Another title"}}
    assert study_of_module.planned(**config_with(registry=registry)) == set()


def test_edited_raw_file_reruns_its_trace(study_of_module, with_downstream_rules):
    with study_of_module.appended("data/sample/pai_sensor_table.csv"):
        assert study_of_module.planned(**SMALL) == with_downstream_rules("ingest", "describe_tables")


def test_touched_files_and_edits_taken_back_rerun_nothing(study_of_module):
    for file in ("data/sample/pai_task_table.csv", "scripts/ttf/stats/durations/mttf.py", "report/page/page.css"):
        (study_of_module.folder / file).touch()
    assert study_of_module.planned(**SMALL) == set()


def start_run(checkout: Checkout, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "scripts/run_study.py", "--config=my.yaml", "--cores=1", *arguments]
    return subprocess.Popen(command, cwd=checkout.folder, stderr=subprocess.PIPE, text=True, env=environment())


def test_a_run_killed_twice_and_robbed_of_a_table_goes_on_to_the_same_bytes(checkout: Checkout, finished_study):
    """Run on one core, unlike the finished study. One process does the rest, which takes half the time."""
    checkout.snakemake("--dry-run", **SMALL)
    table = "results/sample/tables/correlations.csv"
    # Stop at a table derived from that one.
    arguments = ("--", "results/sample/tables/study1.csv")
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
    checkout.snakemake(one_process=True, **SMALL)
    assert checkout.hashes() == finished_study.hashes()
