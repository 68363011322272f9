"""A rerun does what is needed and nothing else; a killed run goes on to the same bytes."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from planned_jobs import jobs_of
from study_runs import SMALL, Checkout, environment, quarto_in
from ttf.analyses.catalogue import rooms

REPORT = {"write_page_source", "render_page", "write_manifest"}
# An analysis with every part, whose tables no other one reads.
ROOM = "estimate_hazards"
AT = f"scripts/ttf/analyses/factors/{ROOM}"


@pytest.fixture(scope="module")
def jobs(study_of_module):
    """Every job of the study, as Snakemake would run it."""
    study_of_module.planned(**SMALL)
    return jobs_of(study_of_module, "my.yaml")


@pytest.fixture(scope="module")
def with_what_follows(jobs):
    """Rules -> these, and all that read what they write, of themselves or through another."""

    def follow(*rules: str) -> set[str]:
        made = {path for job in jobs if job.rule in rules for path in job.outputs}
        more = {job.rule for job in jobs if made.intersection(job.inputs)} - {*rules}
        return follow(*rules, *more) if more else {*rules}

    return follow


@pytest.fixture(scope="module")
def rules_with(jobs):
    """A module -> the rules that import it."""
    return lambda file: {job.rule for job in jobs if file in job.code}


def drawing(jobs) -> set[str]:
    return {job.rule for job in jobs if job.script == "draw_charts"}


def computing(jobs) -> set[str]:
    return {job.rule for job in jobs} - drawing(jobs) - REPORT - {"write_page_template"}


def test_second_run_has_nothing_to_do(finished_study):
    assert finished_study.planned(**SMALL) == set()


# What may stand at the end of a declaration.
NEW_COLUMN = """
from ttf.engine.contract import number
ANALYSIS.tables[0].columns["more"] = number("More", "A new column.")
"""
OTHER_WORDS = """
from dataclasses import replace as _replace
for _name, _column in ANALYSIS.tables[0].columns.items():
    ANALYSIS.tables[0].columns[_name] = _replace(_column, heading="Another", about="Another sentence.")
"""


@pytest.mark.parametrize("room", [ROOM, "fit_mttf"])
def test_a_new_column_plans_its_analysis_and_what_reads_its_tables(study_of_module, jobs, with_what_follows, room):
    """Those analyses after it that declare one of its tables, and those after them, but no other."""
    declared, planned = rooms(), {room}
    for _ in declared:
        tables = {table.name for name in planned for table in declared[name].tables}
        planned |= {name for name, other in declared.items() if tables & {*other.needs, *other.uses}}
    planned &= {job.rule for job in jobs}
    assert len(planned) == {ROOM: 2, "fit_mttf": 4}[room]
    with study_of_module.appended(f"scripts/ttf/analyses/{declared[room].theme}/{room}/__init__.py", text=NEW_COLUMN):
        expected = {*planned, *drawing(jobs), "summarise", "write_dictionary", *REPORT}
        assert study_of_module.planned(**SMALL) == expected


def test_a_heading_or_a_sentence_of_a_contract_plans_the_report_and_the_dictionary_alone(study_of_module):
    with study_of_module.appended(f"{AT}/__init__.py", text=OTHER_WORDS):
        assert study_of_module.planned(**SMALL) == {"write_dictionary", *REPORT}


def test_an_edited_sentence_of_a_section_plans_the_report_alone(study_of_module):
    for template in (f"{AT}/hazards.qmd", "report/sections/methods.qmd"):
        with study_of_module.appended(template):
            assert study_of_module.planned(**SMALL) == REPORT


def test_an_edited_theme_plans_no_rule_that_computes(study_of_module, jobs):
    with study_of_module.appended("scripts/ttf/display/charts/theme.py"):
        planned = study_of_module.planned(**SMALL)
    assert drawing(jobs) <= planned
    assert not planned & computing(jobs)


@pytest.mark.parametrize("part", ["compute", "charts", "numbers", "page"])
def test_an_edited_part_of_an_analysis_reruns_what_it_is_for(study_of_module, jobs, with_what_follows, part):
    of_parts = {
        "compute": {ROOM},
        "charts": drawing(jobs),
        "numbers": {"summarise"},
        "page": {"write_page_source"},
    }
    with study_of_module.appended(f"{AT}/{part}.py"):
        assert study_of_module.planned(**SMALL) == with_what_follows(*of_parts[part])


@pytest.mark.parametrize("file", ["scripts/ttf/stats/durations/mttf.py", "scripts/ttf/records/lives.py"])
def test_an_edited_module_that_several_share_reruns_all_of_them(
    study_of_module, jobs, rules_with, with_what_follows, file
):
    assert len(rules_with(file)) > 1
    with study_of_module.appended(file):
        assert study_of_module.planned(**SMALL) == with_what_follows(*rules_with(file))


def test_edited_files_beside_the_modules_rerun_their_rules(study_of_module, with_what_follows):
    """A script, a style, a published finding; and the schema of the raw tables, with which all begins anew."""
    with study_of_module.appended("scripts/bundle_vega.py"):
        assert study_of_module.planned(**SMALL) == with_what_follows("bundle_vega", "write_manifest")
    for part in ("page.css", "planner.js"):
        with study_of_module.appended(f"report/page/{part}"):
            assert study_of_module.planned(**SMALL) == {"write_page_template", "render_page", "write_manifest"}
    with study_of_module.appended("report/comparison.html", "report/paper.typ"):
        assert study_of_module.planned(**SMALL) == {"write_manifest"}, "of pages that this study does not have"
    with study_of_module.appended("config/claims.yaml"):
        assert study_of_module.planned(**SMALL) == {"score_claims", *REPORT}
    with study_of_module.appended(
        "scripts/ttf/formats/pai2020/format.yaml", text="        - {name: more, type: text}\n"
    ):
        assert study_of_module.planned(**SMALL) == with_what_follows("ingest", "describe_tables")


def test_a_plan_tells_that_a_module_was_edited_and_a_comment_plans_nothing(study_of_module):
    for file in (f"{AT}/cox.py", "scripts/compute.py", "scripts/ttf/stats/durations/mttf.py"):
        with study_of_module.appended(file, text="\n\n# A comment.\n"):
            assert study_of_module.planned(**SMALL) == set()
    with study_of_module.appended(f"{AT}/cox.py"):
        said = study_of_module.snakemake("--dry-run", **SMALL).stdout
    assert f"rule {ROOM}:" in said and "Params have changed since last execution" in said


def test_edited_files_that_the_study_does_not_use_rerun_nothing_but_the_manifest(study_of_module, jobs):
    used = {file for job in jobs for file in job.code} | {f"scripts/{job.script}.py" for job in jobs}
    scripts = study_of_module.folder / "scripts"
    every = {str(file.relative_to(study_of_module.folder)) for file in scripts.rglob("*.py")}
    declarations = {f"scripts/ttf/analyses/{room.theme}/{name}/__init__.py" for name, room in rooms().items()}
    unused = every - used - declarations
    assert any("openb" in file or "philly" in file for file in unused)
    with study_of_module.appended(*unused, "config/taxonomy.yaml", "scripts/ttf/formats/openb.yaml", "README.md"):
        assert study_of_module.planned(**SMALL) == {"write_manifest"}


def test_another_renderer_renders_the_pages_again(study_of_module, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", quarto_in(tmp_path))
    assert study_of_module.planned(**SMALL) == {"render_page", "write_manifest"}


NOT_INSTALLED = """
def _pandoc():
    raise ModuleNotFoundError("pypandoc")
"""


def test_a_study_is_planned_where_only_its_jobs_have_pandoc(study_of_module):
    """As with --sdm conda."""
    with study_of_module.appended("scripts/ttf/page/render/render.py", text=NOT_INSTALLED):
        assert study_of_module.planned(**SMALL) == {"render_page", "write_manifest"}


REVERSED = """
import ttf.analyses.catalogue
def _reversed(folders=()):
    return dict(reversed(places(folders).items()))
ttf.analyses.catalogue.places = _reversed
"""


def test_the_order_in_which_analyses_are_found_makes_no_product_anew(study_of_module):
    with study_of_module.appended("workflow/study/study.py", text=REVERSED):
        assert study_of_module.planned(**SMALL) == {"write_manifest"}, "it has every file of the workflow"


def with_config(**changes) -> dict:
    return {**SMALL, **changes}


# Key -> a configuration with another value of it, and the rules that read the key; which analyses read which key, all
# of them, in tests/unit/test_study.py.
CHANGED_KEYS = {
    "correlation.significance": (
        with_config(correlation={"significance": 0.01}),
        {"correlate", "ask_again", "write_page_source"},
    ),
    "ettr.run_key, of traces that tell attempts apart": (with_config(ettr={"run_key": ["user"]}), set()),
    "infra_failures.states": (with_config(infra_failures={"states": ["Failed"]}), {"derive_infra_lives"}),
    "quarantine.max_share": (with_config(quarantine={"max_share": 0.5}), {"ingest"}),
    "registry.sample.title": (
        with_config(registry={"sample": {"title": "Another title"}}),
        {"summarise", "write_page_source"},
    ),
}


@pytest.mark.parametrize("key", CHANGED_KEYS)
def test_changed_key_reruns_what_reads_it(study_of_module, with_what_follows, key):
    config, rules = CHANGED_KEYS[key]
    assert study_of_module.planned(**config) == with_what_follows("write_config", *rules)


def test_changed_registry_of_another_trace_reruns_nothing(study_of_module):
    registry = {"sample": {}, "openb": {"title": "Another title"}}
    assert study_of_module.planned(**with_config(registry=registry)) == set()


def test_edited_raw_file_reruns_its_trace(study_of_module, with_what_follows):
    with study_of_module.appended("data/sample/pai_sensor_table.csv"):
        assert study_of_module.planned(**SMALL) == with_what_follows("ingest", "describe_tables")


def test_touched_files_and_edits_taken_back_rerun_nothing(study_of_module):
    for file in ("data/sample/pai_task_table.csv", "scripts/ttf/stats/durations/mttf.py", "report/page/page.css"):
        (study_of_module.folder / file).touch()
    assert study_of_module.planned(**SMALL) == set()


def started(checkout: Checkout, *words: str) -> subprocess.Popen:
    """`make report` of a small study, on one core."""
    command = [sys.executable, "scripts/run_study.py", "--config=my.yaml", "--cores=1", *words]
    return subprocess.Popen(command, cwd=checkout.folder, stderr=subprocess.PIPE, text=True, env=environment())


def test_a_run_killed_twice_and_robbed_of_a_table_goes_on_to_the_same_bytes(checkout: Checkout, finished_study):
    """On one core, where the finished study had all. The rest is done by jobs one after the other in one process, which
    is how the tests of what a study makes run theirs, in half the time.
    """
    checkout.snakemake("--dry-run", **SMALL)
    table = "results/sample/tables/correlations.csv"
    # To a table made of that one, and no further.
    words = ("--", "results/sample/tables/study1.csv")
    for moment in ("results/sample/raw", table):
        run = started(checkout, *words)
        deadline = time.monotonic() + 120
        while not (checkout.folder / moment).exists() and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        (snakemake,) = psutil.Process(run.pid).children()
        os.killpg(snakemake.pid, signal.SIGKILL)
        run.communicate()
        assert run.returncode == 128 + signal.SIGKILL, "the run ended before it could be killed"
        assert [*(checkout.folder / ".snakemake/locks").iterdir()], "the lock of Snakemake, which a rerun takes away"
    (checkout.folder / "results/sample/nodes.parquet").unlink()
    run = started(checkout, *words)
    said = run.communicate()[1]
    assert run.returncode == 0, said
    checkout.snakemake(one_process=True, **SMALL)
    assert checkout.hashes() == finished_study.hashes()
