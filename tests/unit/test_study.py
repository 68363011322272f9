"""The study without Snakemake: its traces, their files and analyses, and refused configurations."""

import importlib
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import ttf.analyses
from ttf.engine.contract import Table
from ttf.page.publish.pages import FILES
from ttf.study.configuration.messages import ConfigError
from ttf.study.running.products import flatten_paths
from ttf.study.study import Study, match_names

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ("sample", "sample_philly", "sample_slurm")


def make_study(**config) -> Study:
    return Study([("my.yaml", {"study": list(SAMPLES)} | config)])


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    """Run each test in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ttf.analyses, "__path__", [*ttf.analyses.__path__])
    return tmp_path


@pytest.fixture(scope="module")
def samples():
    return make_study()


def write_file(folder: str, name: str, content: bytes = b"") -> str:
    Path(folder).mkdir(exist_ok=True)
    Path(folder, name).write_bytes(content)
    return folder


def declare_analysis(name: str, **declared) -> str:
    """Declare a user's analysis; return the folder that holds it."""
    Path("own", name).mkdir(parents=True)
    arguments = ", ".join(f"{key}={value!r}" for key, value in declared.items())
    declaration = f'Analysis(question="Why?", theme="outcomes", {arguments})'
    text = f"from ttf.analyses.declaration import Analysis\nANALYSIS = {declaration}\n"
    Path("own", name, "__init__.py").write_text(text)
    return str(Path("own").resolve())


def test_no_trace_replaces_another_page():
    names = ["index", FILES, "mine"]
    registry = {name: {"format": "pai2020", "embedded": True} for name in names}
    study = make_study(study=names, registry=registry)
    assert study.pages == {f"trace-{name}": name for name in names[:-1]} | {"mine": "mine"}


def test_a_study_is_read_without_snakemake_and_polars():
    program = (
        "import sys; from ttf.study.study import Study\n"
        f"study = Study([('', {{'study': {list(SAMPLES)}}})])\n"
        "assert len(study.analyses) > 20; print(*sys.modules)"
    )
    paths = str(ROOT / "scripts")
    run = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    assert not {"snakemake", "polars", "numpy", "altair"} & {*run.stdout.split()}


def test_an_analysis_needs_its_inputs_and_their_inputs():
    """Durations without jobs exclude analyses of jobs; drift needs a request and a reference trace."""
    write_file("durations", "gc_full.csv")
    windows = {"by": "month", "against": "sample_philly"}
    registry = {"mine": {"format": "titan", "folder": "durations"}, "sample": {"windows": windows}}
    study = make_study(study=["mine", "sample", "sample_philly"], registry=registry)
    names = {analysis.name for analysis in study.list_analyses("mine")}
    assert {"fit_mttf", "judge_lifetimes", "estimate_hazards", "measure_sizes", "plan_ettr"} <= names
    for analysis in study.list_analyses("mine"):
        assert not {"jobs", "nodes", "attempts", "placements"} & {*analysis.declaration.needs}
        assert all(study.find_file("mine", name) for name in analysis.declaration.needs)
    assert study.analyses["measure_drift"].traces == ["sample"]
    assert study.analyses["measure_drift"].inputs("sample") == {
        "jobs": "results/sample/jobs.parquet",
        "jobs_against": "results/sample_philly/jobs.parquet",
    }


# Key -> changed value, analyses of a sample that read it.
KEYS = {
    "correlation/significance": (0.01, {"correlate", "repeat_study"}),
    "ledger/price_per_gpu_hour": (3, {"account_gpu_hours", "summarise_results", "plan_ettr", "list_drains"}),
    "lemons/window_days": (7, {"find_lemon_nodes"}),
    "ettr/restart_s": (1, {"plan_ettr", "measure_ettr", "account_gpu_hours"}),
    "quarantine/max_share": (0.5, set()),
}


@pytest.mark.parametrize("key", KEYS)
def test_a_setting_reaches_the_analyses_that_read_it(samples, monkeypatch, key):
    value, readers = KEYS[key]
    group, name = key.split("/")
    jobs = [(analysis, trace) for analysis in samples.analyses.values() for trace in analysis.traces]
    first = [analysis.settings(trace) for analysis, trace in jobs]
    changed = samples.config | {group: samples.config[group] | {name: value}}
    monkeypatch.setattr(samples, "config", changed)
    for trace in samples.traces.values():
        monkeypatch.setattr(trace, "settings", changed)
    second = [analysis.settings(trace) for analysis, trace in jobs]
    assert {job[0].name for job, old, new in zip(jobs, first, second, strict=True) if old != new} == readers


def test_every_chart_that_is_declared_can_be_drawn(samples):
    for trace in samples.names:
        for chart, analysis in samples.list_charts(trace).items():
            assert callable(importlib.import_module(f"{analysis.module}.charts").CHARTS[chart]), (trace, chart)


def test_traces_with_the_same_charts_are_drawn_by_one_rule():
    write_file("a", "openb_pod_list_default.csv")
    write_file("b", "openb_pod_list_default.csv")
    registry = {name: {"format": "openb", "folder": name} for name in ("a", "b")}
    groups = make_study(study=["a", "sample", "b"], registry=registry).traces_by_chart_set
    assert groups == {"openb": ["a", "b"], "pai2020": ["sample"]}
    registry["b"]["windows"] = {"by": "month"}
    groups = make_study(study=["a", "b"], registry=registry).traces_by_chart_set
    assert groups == {"openb_a": ["a"], "openb_b": ["b"]}


def test_requested_memory_grows_with_the_raw_tables():
    write_file("telemetry", "cluster_job_log")
    with Path("telemetry/cluster_gpu_util").open("wb") as file:
        file.truncate(3_000_000_000)
    study = make_study(study=["mine", "sample"], registry={"mine": {"format": "philly", "folder": "telemetry"}})
    use = study.analyses["measure_use"].declaration
    assert study.measure_raw_tables("mine") == ("philly", 3.0)
    expected_mb = study.measured_resources["snakemake_mb"] + use.memory_mb + 3 * use.mb_per_gb["philly"]
    assert study.estimate_memory_mb("measure_use", 1, trace="mine") == expected_mb
    assert study.estimate_memory_mb("measure_use", 2, trace="mine") == 2 * expected_mb
    assert study.measure_raw_tables("comparison") == (None, 3.0), "the study reads all raw tables"


# Refused configurations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"needs": ["mtf"]}, r"analysis NAME: there is no table mtf; did you mean mttf\?"),
        ({"uses": ["jobs", "lemon_node"]}, r"analysis NAME: there is no table lemon_node; did you mean lemon_nodes\?"),
        (
            {"charts": {"mine": ["outcomes", "outcome_gpu"]}},
            r"chart mine of analysis NAME: there is no table outcome_gpu; did you mean outcomes_gpu\?",
        ),
        (
            {"settings": {"x": "lemons/windowdays"}},
            r"analysis NAME, setting x: there is no key lemons/windowdays; did you mean lemons/window_days\?",
        ),
        ({"settings": {"x": "sizes/above_gpus/more"}}, "there is no key sizes/above_gpus/more.$"),
    ],
)
def test_an_analysis_that_names_an_unknown_table_or_key(declared, message):
    name = f"of_{uuid.uuid4().hex}"
    with pytest.raises(ConfigError, match=message.replace("NAME", name)):
        make_study(analyses=[declare_analysis(name, **declared)]).traces_by_chart_set  # noqa: B018


def test_a_finding_needs_tables_of_traces_of_the_study(samples):
    assert set(samples.find_claim_tables()) <= set(samples.names)
    text = "sources: {s: A source}\nclaims:\n- {id: a, of: sample, source: s, statement: S, published: 1, unit: s, "
    text += "evidence: printed, tolerance: 0, why: exact, quantity: {table: mttf, column: mttf_s}}\n"
    Path("mine.yaml").write_text(text)
    claimed = make_study(claims=["mine.yaml"]).find_claim_tables()["sample"]
    assert claimed == samples.find_claim_tables().get("sample", {}) | {"mttf": "results/sample/tables/mttf.csv"}
    assert "sample" not in make_study(study=["sample_philly"], claims=["mine.yaml"]).find_claim_tables()


# Code of rules and paths ------------------------------------------------------------------------------------------


def test_the_code_of_a_rule_depends_on_the_declaration_of_its_tables(samples, monkeypatch):
    analysis = samples.analyses["correlate"]

    def code(words=False):
        return samples.hash_code("compute", f"{analysis.module}.compute", words=words)

    types, full = code(), code(words=True)
    assert types != full and samples.code_files[types] == samples.code_files[full]
    assert f"scripts/ttf/analyses/{analysis.declaration.theme}/{analysis.name}/__init__.py" in samples.code_files[types]
    monkeypatch.setattr(Table, "types", "others")
    monkeypatch.delitem(vars(samples), "_types_by_declaration")  # read once in a study
    assert code() != types and code(words=True) == full


def test_any_of_no_names_matches_nothing():
    assert (match_names(["a", "b"]), match_names([])) == ("a|b", "(?!)")


def test_paths_in_nested_lists_are_distinct():
    assert flatten_paths([["a", ["b"]], "a", [], ["c", "b"]]) == ["a", "b", "c"]
