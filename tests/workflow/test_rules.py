"""The rules as Snakemake has them, beside the declarations that they are made from: a study of every format, unrun."""

import contextlib
import json
import re
import runpy
from pathlib import Path

import pytest
import yaml
from import_graph import followed
from made_traces import write_all
from planned_jobs import jobs_of
from study.products import flatten_paths
from study.resources import estimate_memory_mb
from study.study import Study
from study.study_analysis import COMPARISON
from study_runs import ROOT, check_out

# As large as no made-up trace is; so that what a job asks for by the GB shows.
GROWN = ("raw/philly/cluster_gpu_util", "raw/sacct/large.txt")


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """(the study, all of its jobs), of each format and with every analysis."""
    checkout = check_out(tmp_path_factory.mktemp("rules") / "checkout")
    registry = write_all(checkout.folder / "raw")
    registry["made_helios"]["windows"] = {"by": "month", "against": "made_acme"}
    drives = checkout.folder / "raw" / "drives"
    drives.mkdir()
    day = "date,serial_number,model,capacity_bytes,failure,smart_9_raw\n2013-04-10,a,A,1,0,9\n"
    (drives / "2013-04-10.csv").write_text(day)
    registry["drives"] = {"format": "backblaze", "folder": "raw/drives"}
    for file in GROWN:
        with (checkout.folder / file).open("ab") as grown:
            grown.truncate(2_000_000_000)  # a hole, which takes no room on the disk
    config = {"study": ["sample", "sample_slurm", *registry], "registry": registry}
    (checkout.folder / "my.yaml").write_text(yaml.safe_dump(config))
    with contextlib.chdir(checkout.folder):
        yield Study([("my.yaml", config)], ROOT), jobs_of(checkout, "my.yaml")


@pytest.fixture(scope="module")
def of_rooms(planned):
    """(room, trace, job) of every job of an analysis."""
    study, jobs = planned
    return [(study.analyses[job.rule], job.wildcards["trace"], job) for job in jobs if job.rule in study.analyses]


def test_every_analysis_has_its_rule_and_runs_on_the_traces_that_have_it(planned, of_rooms):
    study, _ = planned
    assert {room.name for room, _, _ in of_rooms} == set(study.analyses), "an analysis that no trace here has"
    asked = sorted((room.name, trace) for room in study.analyses.values() for trace in room.traces)
    assert sorted((room.name, trace) for room, trace, _ in of_rooms) == asked


def test_rules_are_found_by_their_names(planned):
    rules = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "workflow/rules").glob("*.smk"))
    # Made for each kind of trace: the name begins with what stands there.
    made = {
        rule for rule in {job.rule for job in planned[1]} if re.match("draw_charts_|unpack_sample_|pseudonymise_", rule)
    }
    for rule in {job.rule for job in planned[1]} - made:
        assert re.search(rf"^ *(use rule \w+ as |rule ){rule}(:| with:)", rules, re.MULTILINE), rule
    generator = runpy.run_path(str(ROOT / "docs/analysis_rules.py"))
    assert (ROOT / "workflow/rules/analyses.smk").read_text(encoding="utf-8") == generator["format_rules"](), (
        "run: make rules"
    )


def test_the_rule_of_an_analysis_is_its_declaration(planned, of_rooms):
    """None has what another one declared, as functions made in a loop are apt to."""
    study, _ = planned
    for room, trace, job in of_rooms:
        declared = room.declaration
        settings = {
            name: study.get_setting(key)
            if isinstance(key, str)
            else key(study if declared.of_study else study.traces[trace])
            for name, key in declared.settings.items()
        }
        params = {"analysis": room.name, "folders": [], "reads": room.input_analyses, "settings": settings}
        assert job.params == json.loads(json.dumps(params)), (room.name, trace)
        assert job.question == declared.question
        written = [*(table.path for table in declared.tables), *declared.folders]
        assert sorted(job.outputs) == sorted(f"results/{study.get_folder(trace)}/{path}" for path in written)
        unit = {"size_unit"} if declared.in_size_unit else set()
        assert set(job.input) <= {*declared.needs, *declared.uses} | unit
        assert set(job.input) >= set(declared.needs), (room.name, trace)


def test_the_inputs_of_an_analysis_are_what_it_names(planned, of_rooms):
    study, jobs = planned
    made = {path for job in jobs for path in job.outputs}
    for room, trace, job in of_rooms:
        for name, files in job.input.items():
            traces = list(study.traces) if trace == COMPARISON else [trace]
            assert files == flatten_paths([found for one in traces if (found := study.find_file(one, name))]), (
                room.name,
                name,
            )
            if name in study.tables:
                assert all(file.endswith(study.tables[name].path) and file in made for file in files)


def test_what_a_job_asks_for_is_what_was_declared_or_measured(planned):
    study, jobs = planned
    large = set()
    for job in jobs:
        if job.rule == "write_manifest":
            continue  # it is never sent anywhere
        about = {key: value for key, value in job.wildcards.items() if key in ("trace", "part")}
        rule = job.rule if job.rule in study.analyses else job.script
        format, raw_gb = study.measure_raw_tables(**about)
        of_rule = study.measured_resources["rules"].get(rule, study.measured["other"])
        if room := study.analyses.get(rule):
            of_rule = {"base_mb": room.declaration.memory_mb, "mb_per_gb": room.declaration.mb_per_gb}
            assert job.resources["threads"] == room.declaration.threads
        measured = study.measured_resources | {"rules": {rule: of_rule}}
        assert job.resources["mem_mb"] == estimate_memory_mb(measured, rule, format, raw_gb, 1), job.rule
        large |= {rule} if raw_gb > 1.9 and of_rule.get("mb_per_gb") else set()
    assert {"measure_use", "measure_ettr", "classify_failures", "derive_attempts", "ingest_part"} <= large


def modules_named(job, study) -> list[str]:
    """What the script of a job imports by a name that it is given."""
    if room := study.analyses.get(job.rule):
        return [f"{room.module}.compute", *(study.analyses[name].module for name in room.input_analyses)]
    if job.script.startswith(("ingest", "merge_parts", "describe_tables")):
        return study.traces[job.wildcards["trace"]].reader
    if job.script.startswith("derive") and job.script != "derive_infra_lives":
        return [study.traces[job.wildcards["trace"]].format["code"]]
    if job.script == "write_dictionary":
        return [room.module for room in study.analyses.values()]
    of_trace = study.list_analyses(job.wildcards["trace"]) if "trace" in job.wildcards else study.analyses.values()
    parts = {"draw_charts": "charts", "summarise": "numbers", "write_page_source": "page"}
    if job.script not in parts:
        return []
    if job.script == "draw_charts":
        # A room may have charts that the trace has not.
        return [
            module
            for room in study.list_chart_analyses(job.wildcards["trace"])
            for module in room.list_modules("charts")
        ]
    found = [module for room in of_trace for module in room.list_modules(parts[job.script])]
    return [*found, *(room.module for room in of_trace)]


def test_a_job_has_the_modules_that_it_imports_as_parameters_and_no_others(planned):
    """Those that it imports by name too, which an edit of one of them must reach; and of no other format."""
    study, jobs = planned
    for job in jobs:
        used = {str(file.relative_to(ROOT)) for file in followed(job.script, *modules_named(job, study))}
        assert set(job.code) == used, job.rule
        if trace := study.traces.get(job.wildcards.get("trace")):
            formats = {Path(file).parts[3] for file in used if file.startswith("scripts/ttf/formats/")}
            of_slurm = {"sacct", "slurm_events"}  # these two read node events alike
            own = {trace.entry["format"]}
            assert formats & set(study.formats) <= own | (of_slurm if own & of_slurm else set()), job.rule


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


# A file that is no module -> the rules that read it.
READ = {
    "config/claims.yaml": {"score_claims"},
    "report/sections/methods.qmd": {"write_page_source"},
    "report/comparison.html": {"write_comparison_source"},
    "report/page/page.css": {"write_page_template"},
    "report/page/planner.js": {"write_page_template"},
    # What these say is among the parameters.
    "config/taxonomy.yaml": set(),
    "scripts/ttf/formats/pai2020/format.yaml": set(),
    "README.md": set(),
}


@pytest.mark.parametrize("file", READ)
def test_a_file_is_read_by(planned, file):
    assert {job.rule for job in planned[1] if file in job.inputs} == READ[file]
