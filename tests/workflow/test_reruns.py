"""A rerun does what is needed and nothing else; a killed run goes on to the same bytes."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from study_runs import SMALL, Checkout, environment

REPORT = {"write_report_source", "render_report"}
REPORT_AND_PICTURES = REPORT | {"render_figures_pai2020"}
FROM_SUMMARY = {"draw_charts", "summarise"} | REPORT_AND_PICTURES
FROM_HAZARDS = {"estimate_hazards", "summarise"} | REPORT_AND_PICTURES
FROM_LIVES = {"fit_mttf", "judge_lifetimes", "ask_again"} | FROM_HAZARDS | FROM_SUMMARY
FROM_PLANS = {"plan_ettr", "summarise"} | REPORT_AND_PICTURES
FROM_SIZES = {"measure_sizes"} | FROM_PLANS
FROM_LOSSES = {"measure_losses", "summarise"} | REPORT_AND_PICTURES
FROM_LEMONS = {"find_lemon_nodes", "summarise"} | REPORT_AND_PICTURES
FROM_STATES = {"describe_states", "summarise"} | REPORT_AND_PICTURES
FROM_INFRA_LIVES = FROM_SIZES | FROM_LOSSES | FROM_LEMONS | FROM_STATES
FROM_OCCUPANCY = {"reconstruct_occupancy", "summarise"} | REPORT_AND_PICTURES
FROM_JOBS = {"split_outcomes", "derive_lives", "derive_infra_lives"} | FROM_LIVES | FROM_INFRA_LIVES
FROM_JOBS |= {"correlate", "describe_workload"} | FROM_OCCUPANCY
FROM_TYPED = {"derive_runtimes", "derive_placements"} | FROM_JOBS
FROM_RAW = {"ingest", "describe_tables"} | FROM_TYPED

EDITED_MODULES = {
    "scripts/ttf/raw_tables.py": FROM_RAW,
    "scripts/ttf/formats/pai2020/derive.py": FROM_TYPED,
    "scripts/ttf/quality/statistics.py": {"describe_tables", "summarise"} | REPORT,
    "scripts/ttf/analyses/compare_traces/labels.py": REPORT,
    "scripts/ttf/outcomes.py": {"split_outcomes"} | FROM_SUMMARY,
    "scripts/ttf/lives.py": {"derive_lives", "derive_infra_lives"} | FROM_LIVES | FROM_INFRA_LIVES,
    "scripts/ttf/infra.py": {"derive_infra_lives"} | FROM_INFRA_LIVES,
    "scripts/ttf/given_csv.py": {"derive_infra_lives"} | FROM_INFRA_LIVES,
    "scripts/ttf/stats/correlation.py": {"correlate", "ask_again"} | FROM_SUMMARY,
    "scripts/ttf/stats/ettr.py": {"recompute_ettr", "score_claims"} | FROM_PLANS,
    "scripts/ttf/stats/ettr_reference.py": {"recompute_ettr"} | REPORT,
    "scripts/ttf/analyses/plan_ettr/planner.py": FROM_PLANS,
    "scripts/ttf/stats/survival.py": FROM_LIVES | FROM_SIZES | FROM_LOSSES,
    "scripts/ttf/stats/mttf.py": FROM_LIVES
    | FROM_SIZES
    | FROM_STATES
    | FROM_LEMONS
    | {"recompute_ettr", "score_claims"},
    "scripts/ttf/analyses/measure_sizes/sizes.py": FROM_SIZES,
    "scripts/ttf/analyses/measure_sizes/over_time.py": FROM_SIZES,
    "scripts/ttf/stats/states.py": FROM_STATES,
    "scripts/ttf/placements.py": FROM_TYPED,
    "scripts/ttf/analyses/find_lemon_nodes/compute.py": FROM_LEMONS,
    "scripts/ttf/analyses/find_lemon_nodes/excess.py": FROM_LEMONS,
    "scripts/ttf/analyses/find_lemon_nodes/node_runs.py": FROM_LEMONS,
    "scripts/ttf/analyses/find_lemon_nodes/trials.py": FROM_LEMONS,
    "scripts/ttf/stats/holdings.py": FROM_OCCUPANCY,
    "scripts/ttf/stats/what_if.py": FROM_LOSSES,
    "scripts/ttf/analyses/fit_mttf/lifetime_fits.py": {"fit_mttf", "judge_lifetimes", "ask_again"} | FROM_SUMMARY,
    "scripts/ttf/analyses/judge_lifetimes/compute.py": {"judge_lifetimes", "summarise"} | REPORT_AND_PICTURES,
    "scripts/ttf/stats/workload.py": {"describe_workload", "summarise"} | REPORT_AND_PICTURES,
    "scripts/ttf/analyses/estimate_hazards/cox.py": FROM_HAZARDS,
    "scripts/ttf/charts/theme.py": {"draw_charts", "describe_workload", "judge_lifetimes", "ask_again"}
    | FROM_HAZARDS
    | FROM_INFRA_LIVES
    | FROM_OCCUPANCY,
    "scripts/ttf/numbers/jobs.py": {"summarise"} | REPORT,
    "scripts/ttf/report/source.py": REPORT,
    "scripts/ttf/replication/study1.py": {"ask_again", "summarise"} | REPORT_AND_PICTURES,
    "scripts/ttf/stats/population.py": {"describe_workload", "summarise"} | REPORT_AND_PICTURES,
    "scripts/ttf/replication/scorecard.py": {"score_claims"} | REPORT,
    "config/claims.yaml": {"score_claims"} | REPORT,
    "scripts/ttf/report/render.py": {"render_report"},
    "scripts/render_figures.py": {"render_figures_pai2020"},
    "scripts/bundle_vega.py": {"bundle_vega", "render_report"},
    "report/sections/methods.qmd": REPORT,
    "report/pandoc.css": {"render_report"},
    "scripts/ttf/formats/pai2020/format.yaml": FROM_RAW,
    "scripts/ttf/provenance/manifest.py": {"write_manifest"},
}

# Of which the sample has no need.
EDITED_FOR_NOTHING = [
    "scripts/ttf/formats/table/read.py",
    "scripts/ttf/formats/mapped.py",
    "scripts/ttf/traces/philly_telemetry.py",
    "scripts/ttf/analyses/classify_failures/rules.py",
    "config/taxonomy.yaml",
    "scripts/ttf/formats/openb.yaml",
    "scripts/ttf/provenance/verify.py",
    "README.md",
]


def and_manifest(rules: set[str]) -> set[str]:
    """Whatever is made anew, the manifest is written after it."""
    return rules | {"write_manifest"} if rules else rules


def with_config(**changes) -> dict:
    return {**SMALL, **changes}


CHANGED_KEYS = {
    "correlation.cutoffs_s": (
        with_config(correlation={"cutoffs_s": [3600]}),
        {"correlate", "ask_again", "write_config"} | FROM_SUMMARY,
    ),
    "correlation.significance": (
        with_config(correlation={"significance": 0.01}),
        {"correlate", "ask_again", "write_config"} | FROM_SUMMARY,
    ),
    "lost_work.trial_minutes": (
        with_config(lost_work={"trial_minutes": [2]}),
        FROM_LOSSES | {"write_config"},
    ),
    "lemons.window_days": (with_config(lemons={"window_days": 7}), FROM_LEMONS | {"write_config"}),
    "lemons.infra_window_days": (with_config(lemons={"infra_window_days": 90}), FROM_LEMONS | {"write_config"}),
    "survival.max_steps": (with_config(survival={"max_steps": 50}), FROM_LIVES | {"write_config"}),
    "sizes.above_gpus": (with_config(sizes={"above_gpus": 16}), FROM_SIZES | {"write_config"}),
    "ettr.seed": (with_config(ettr={"seed": 1}), FROM_PLANS | {"write_config"}),
    # Of traces that tell attempts apart.
    "ettr.run_key": (with_config(ettr={"run_key": ["user"]}), {"write_config"}),
    "infra_failures.states": (
        with_config(infra_failures={"states": ["Failed"]}),
        {"derive_infra_lives", "write_config"} | FROM_INFRA_LIVES,
    ),
    "quarantine.max_share": (with_config(quarantine={"max_share": 0.5}), FROM_RAW | {"write_config"}),
    "registry.sample.generate.seed": (
        with_config(registry={"sample": {"generate": {"tasks": 2000, "seed": 7}}}),
        FROM_RAW | {"make_sample_pai2020", "write_config"},
    ),
    "registry.sample.title": (
        with_config(registry={"sample": {"generate": {"tasks": 2000}, "title": "Another title"}}),
        REPORT | {"write_config"},
    ),
    "registry of another trace": (
        with_config(registry={"sample": {"generate": {"tasks": 2000}}, "openb": {"title": "Another title"}}),
        set(),
    ),
}


def test_second_run_has_nothing_to_do(finished_study):
    assert finished_study.planned(**SMALL) == set()


@pytest.mark.parametrize("file", EDITED_MODULES)
def test_edited_file_reruns_what_uses_it(study_of_module, file):
    with study_of_module.appended(file):
        assert study_of_module.planned(**SMALL) == and_manifest(EDITED_MODULES[file])


def test_a_plan_tells_which_module_was_edited(study_of_module):
    with study_of_module.appended("scripts/ttf/analyses/estimate_hazards/cox.py"):
        said = study_of_module.snakemake("--dry-run", "--quiet", "host", **SMALL).stdout
    reason = next(line for line in said.splitlines() if "Params have changed" in line)
    assert re.findall(r"'(\S+) \w{12}'", reason) == ["scripts/ttf/analyses/estimate_hazards/cox.py"] * 2, (
        "as it was, and as it is"
    )


def test_edited_files_that_the_study_does_not_use_rerun_nothing(study_of_module):
    with study_of_module.appended(*EDITED_FOR_NOTHING):
        assert study_of_module.planned(**SMALL) == set()


@pytest.mark.parametrize("key", CHANGED_KEYS)
def test_changed_key_reruns_what_reads_it(study_of_module, key):
    config, rules = CHANGED_KEYS[key]
    assert study_of_module.planned(**config) == and_manifest(rules)


def test_edited_raw_file_reruns_its_trace(study_of_module):
    with study_of_module.appended("data/sample/pai_sensor_table.csv"):
        assert study_of_module.planned(**SMALL) == and_manifest(FROM_RAW)


def test_edits_taken_back_rerun_nothing(study_of_module):
    assert study_of_module.planned(**SMALL) == set()


def test_touched_file_reruns_nothing(study):
    for file in ("data/sample/pai_task_table.csv", "scripts/ttf/stats/mttf.py", "report/report.qmd"):
        (study.folder / file).touch()
    assert study.planned(**SMALL) == set()


def test_rerun_after_an_edit_gives_the_bytes_of_a_clean_run(study, finished_study):
    (study.folder / "results/sample/tables/mttf.csv").unlink()
    (study.folder / "results/report/index.html").unlink()
    study.snakemake(**SMALL)
    assert study.hashes() == finished_study.hashes()


def test_one_core_and_two_give_the_same_bytes(checkout, finished_study):
    """Whether each job has a process of its own or comes after others in the same makes no difference either."""
    checkout.snakemake(one_process=True, **SMALL)
    assert checkout.hashes() == finished_study.hashes()


def test_only_one_run_at_a_time(study):
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from pathlib import Path; from study.lock import hold;"
            "assert hold(Path('.snakemake')); print('held', flush=True); input()",
        ],
        cwd=study.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment() | {"PYTHONPATH": str(study.folder / "workflow")},
    )
    assert holder.stdout.readline() == "held\n"
    (study.folder / "results/report/index.html").unlink()
    refused = study.snakemake(check=False, **SMALL)
    holder.communicate("\n")
    assert refused.returncode == 1
    assert "another run is at work in this folder" in refused.stderr
    study.snakemake(**SMALL)


def test_a_run_killed_twice_goes_on_to_the_same_bytes(checkout: Checkout, finished_study):
    checkout.snakemake("--dry-run", **SMALL)
    for moment in ("results/sample/raw", "results/sample/tables/correlations.csv"):
        run = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--configfile", "my.yaml"],
            cwd=checkout.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=environment(),
        )
        deadline = time.monotonic() + 120
        while not (checkout.folder / moment).exists() and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        assert not (checkout.folder / "results/report/index.html").exists(), "the run ended before it could be killed"
    checkout.snakemake(**SMALL)
    assert checkout.hashes() == finished_study.hashes()
