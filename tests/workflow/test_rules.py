"""Compare Snakemake's rules with the declarations that generate them; a study of every format, not run."""

import contextlib
import json
import re
import runpy
from pathlib import Path

import pytest
import yaml
from import_graph import transitive_imports
from made_traces import write_all
from planned_jobs import plan_jobs
from study_runs import ROOT, check_out
from ttf.study.running.products import flatten_paths
from ttf.study.running.resources import estimate_memory_mb
from ttf.study.study import Study

# Files larger than any made-up trace, so that resources requested per GB differ from the base.
GROWN = ("raw/philly/cluster_gpu_util", "raw/sacct/large.txt")


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Return (study, its jobs) with each format and every analysis."""
    checkout = check_out(tmp_path_factory.mktemp("rules") / "checkout")
    registry = write_all(checkout.folder / "raw")
    registry["made_helios"]["windows"] = {"by": "month", "against": "made_acme"}
    drives = checkout.folder / "raw" / "drives"
    drives.mkdir()
    day = "date,serial_number,model,capacity_bytes,failure,smart_9_raw\n2013-04-10,a,A,1,0,9\n"
    (drives / "2013-04-10.csv").write_text(day)
    registry["drives"] = {"format": "backblaze", "folder": "raw/drives"}
    for file in GROWN:
        with (checkout.folder / file).open("ab") as large_file:
            large_file.truncate(2_000_000_000)  # a sparse file, which needs no disk space
    config = {"study": ["sample", "sample_slurm", *registry], "registry": registry}
    (checkout.folder / "my.yaml").write_text(yaml.safe_dump(config))
    with contextlib.chdir(checkout.folder):
        yield Study([("my.yaml", config)]), plan_jobs(checkout, "my.yaml")


@pytest.fixture(scope="module")
def analysis_jobs(planned):
    study, jobs = planned
    return [(study.analyses[job.rule], job.wildcards["trace"], job) for job in jobs if job.rule in study.analyses]


def test_every_analysis_has_its_rule_and_runs_on_the_traces_that_have_it(planned, analysis_jobs):
    study, _ = planned
    assert {analysis.name for analysis, _, _ in analysis_jobs} == set(study.analyses), (
        "an analysis that no trace here has"
    )
    expected = sorted((analysis.name, trace) for analysis in study.analyses.values() for trace in analysis.traces)
    assert sorted((analysis.name, trace) for analysis, trace, _ in analysis_jobs) == expected


def test_rules_are_found_by_their_names(planned):
    rules = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "workflow/rules").glob("*.smk"))
    # Generated for each kind of trace: the name begins with this prefix.
    generated_rules = {
        rule for rule in {job.rule for job in planned[1]} if re.match("draw_charts_|unpack_sample_|pseudonymise_", rule)
    }
    for rule in {job.rule for job in planned[1]} - generated_rules:
        assert re.search(rf"^ *(use rule \w+ as |rule ){rule}(:| with:)", rules, re.MULTILINE), rule
    generator = runpy.run_path(str(ROOT / "tools/docs/analysis_rules.py"))
    assert (ROOT / "workflow/rules/analyses.smk").read_text(encoding="utf-8") == generator["format_rules"](), (
        "run: make rules"
    )


def test_the_rule_of_an_analysis_is_its_declaration(planned, analysis_jobs):
    """No rule has the declaration of another, a common bug of closures made in a loop."""
    study, _ = planned
    for analysis, trace, job in analysis_jobs:
        declaration = analysis.declaration
        settings = {
            name: study.get_setting(key) if isinstance(key, str) else key(study.traces[trace])
            for name, key in declaration.settings.items()
        }
        params = {"analysis": analysis.name, "folders": [], "reads": analysis.input_analyses, "settings": settings}
        assert job.params == json.loads(json.dumps(params)), (analysis.name, trace)
        assert job.question == declaration.question
        outputs = [*(table.path for table in declaration.tables), *declaration.folders]
        assert sorted(job.outputs) == sorted(f"results/{trace}/{path}" for path in outputs)
        unit = {"size_unit"} if declaration.in_size_unit else set()
        assert set(job.input) <= {*declaration.needs, *declaration.uses} | unit
        assert set(job.input) >= set(declaration.needs), (analysis.name, trace)


def test_the_inputs_of_an_analysis_are_what_it_names(planned, analysis_jobs):
    study, jobs = planned
    products = {path for job in jobs for path in job.outputs}
    for analysis, trace, job in analysis_jobs:
        for name, files in job.input.items():
            assert files == flatten_paths(study.find_file(trace, name) or []), (analysis.name, name)
            if name in study.tables:
                assert all(file.endswith(study.tables[name].path) and file in products for file in files)


def test_what_a_job_asks_for_is_what_was_declared_or_measured(planned):
    study, jobs = planned
    large_rules = set()
    for job in jobs:
        if job.rule == "write_manifest":
            continue  # it always runs locally
        wildcards = {key: value for key, value in job.wildcards.items() if key in ("trace", "part")}
        rule = job.rule if job.rule in study.analyses else job.script
        format_name, raw_gb = study.measure_raw_tables(**wildcards)
        measurement = study.measured_resources["rules"].get(rule, study.measured_resources["other"])
        if analysis := study.analyses.get(rule):
            measurement = {"base_mb": analysis.declaration.memory_mb, "mb_per_gb": analysis.declaration.mb_per_gb}
            assert job.resources["threads"] == analysis.declaration.threads
        measurements = study.measured_resources | {"rules": {rule: measurement}}
        assert job.resources["mem_mb"] == estimate_memory_mb(measurements, rule, format_name, raw_gb, 1), job.rule
        large_rules |= {rule} if raw_gb > 1.9 and measurement.get("mb_per_gb") else set()
    assert {"measure_use", "measure_ettr", "classify_failures", "derive_attempts", "ingest_part"} <= large_rules


# Scripts that derive products of any format by the same code.
FIXED_DERIVATIONS = ("derive_infra_durations", "derive_node_errors", "derive_training_events")


def dynamic_modules(job, study) -> list[str]:
    """Return the modules that the script of a job imports by a name among its parameters."""
    if analysis := study.analyses.get(job.rule):
        return [f"{analysis.module}.compute", *(study.analyses[name].module for name in analysis.input_analyses)]
    if job.script.startswith(("ingest", "merge_parts", "describe_tables")):
        return study.traces[job.wildcards["trace"]].reader
    if job.script.startswith("derive") and job.script not in FIXED_DERIVATIONS:
        return [study.traces[job.wildcards["trace"]].format["code"]]
    if job.script == "write_dictionary":
        return [analysis.module for analysis in study.analyses.values()]
    analyses = study.list_analyses(job.wildcards["trace"]) if "trace" in job.wildcards else study.analyses.values()
    parts = {"draw_charts": "charts", "summarise": "numbers", "write_page_source": "page"}
    if job.script not in parts:
        return []
    if job.script == "draw_charts":
        # An analysis may have charts that the trace lacks.
        return [
            module
            for analysis in study.list_chart_analyses(job.wildcards["trace"])
            for module in analysis.list_modules("charts")
        ]
    modules = [module for analysis in analyses for module in analysis.list_modules(parts[job.script])]
    return [*modules, *(analysis.module for analysis in analyses)]


def test_a_job_has_the_modules_that_it_imports_as_parameters_and_no_others(planned):
    """This includes dynamic imports, so that an edit reruns the job, and excludes other formats."""
    study, jobs = planned
    for job in jobs:
        used = {str(file.relative_to(ROOT)) for file in transitive_imports(job.script, *dynamic_modules(job, study))}
        assert set(job.code) == used, job.rule
        if trace := study.traces.get(job.wildcards.get("trace")):
            formats = {Path(file).parts[3] for file in used if file.startswith("scripts/ttf/formats/")}
            slurm_formats = {"sacct", "slurm_events"}  # these two read node events alike
            expected_formats = {trace.entry["format"]}
            assert formats & set(study.formats) <= expected_formats | (
                slurm_formats if expected_formats & slurm_formats else set()
            ), job.rule


def test_only_what_draws_depends_on_how_charts_look(planned):
    for job in planned[1]:
        if job.script not in ("draw_charts", "write_page_source", "write_comparison_source", "write_page_template"):
            for file in job.code:
                assert Path(file).name != "theme.py", job.rule
                assert "import altair" not in (ROOT / file).read_text(encoding="utf-8"), (job.rule, file)


def test_what_reads_raw_tables_has_their_schema(planned):
    study, jobs = planned
    reading = [job for job in jobs if job.script in ("ingest", "ingest_part", "merge_parts", "describe_tables")]
    assert len(reading) > 10
    for job in reading:
        trace = study.traces[job.wildcards["trace"]]
        assert job.params["reader_options"] == json.loads(json.dumps(trace.reader_options))
        assert job.params["reader_options"]["schema"] == trace.schema


# File other than a module -> the rules that read it.
READERS = {
    "config/claims.yaml": {"score_claims"},
    "report/sections/methods.qmd": {"write_page_source"},
    "report/comparison.html": {"write_comparison_source"},
    "report/page/page.css": {"write_page_template"},
    "report/page/planner.js": {"write_page_template"},
    # The parameters hold the content of these.
    "config/taxonomy.yaml": set(),
    "scripts/ttf/formats/pai2020/format.yaml": set(),
    "README.md": set(),
}


@pytest.mark.parametrize("file", READERS)
def test_a_file_is_read_by(planned, file):
    assert {job.rule for job in planned[1] if file in job.inputs} == READERS[file]
