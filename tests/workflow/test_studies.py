"""Several studies in one folder: own products, shared products, and the study that a command selects."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import run_tests
import yaml
from study_runs import ROOT, SMALL, Checkout, environment, pods, ttf_command, write_pods
from ttf.commands.remove import remove
from ttf.commands.run import find_profile, resolve_arguments
from ttf.study import studies
from ttf.study.configuration.messages import ConfigError

SHARED = {"registry": SMALL["registry"]}


def config_of_both(study: Checkout, count: int = 60) -> dict:
    pods_config = write_pods(study, pods(count))
    return {"name": "both", "study": ["sample", "mine"], "registry": SHARED["registry"] | pods_config["registry"]}


def verify(study: Checkout, name: str) -> str:
    process = study.ttf("verify", "--study", name)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stderr


def test_a_second_study_makes_nothing_again_that_the_first_has_made(study):
    hashes_before = study.hashes()
    config = config_of_both(study)
    written_before = {file: file.stat().st_mtime_ns for file in (study.folder / "results/sample").rglob("*")}
    study.snakemake(one_process=True, **config)
    assert {file: file.stat().st_mtime_ns for file in written_before} == written_before
    hashes_after = study.hashes()
    assert {name: hashes_after[name] for name in hashes_before} == hashes_before
    new_folders = {Path(name).parts[:2] for name in hashes_after.keys() - hashes_before.keys()}
    assert {parts[0] for parts in new_folders} == {"mine", "studies"}
    assert {parts for parts in new_folders if parts[0] == "studies"} == {("studies", "both")}
    assert verify(study, "both") == "study both\n"
    assert verify(study, "sample") == "study sample\n"
    # Each study stays up to date after the other has run.
    assert study.planned(**SMALL) == set()
    with study.appended(
        "raw/mine/openb_pod_list_default.csv", text="pod-more,4000,8192,1,500,V100,LS,Failed,9,19,10\n"
    ):
        process = study.snakemake("--dry-run", **config)
    job_table = (process.stdout + process.stderr).split("Job stats:")[1]
    counts = dict(re.findall(r"^(write_page_source|render_page) +(\d)$", job_table, re.MULTILINE))
    # A finding on the trace may change the scorecard, which all pages read.
    assert counts == {"write_page_source": "2", "render_page": "3"}
    assert study.ttf("explain", "results/mine/tables/mttf.csv").stderr == "study both\n"


def test_two_studies_started_at_the_same_time_both_end_well(checkout, finished_study):
    """Run both up to the jobs of the shared trace; other tests run whole studies."""
    (checkout.folder / "both.yaml").write_text(yaml.safe_dump(config_of_both(checkout)))
    (checkout.folder / "one.yaml").write_text(yaml.safe_dump(SMALL))
    command = ttf_command(checkout.folder, "report", "--cores=1")
    tables = [f"results/{trace}/jobs.parquet" for trace in ("sample", "mine")]
    runs = [
        subprocess.Popen(
            [*command, f"--config={name}.yaml", f"--snakemake={shlex.join(targets)}"],
            cwd=checkout.folder,
            env=environment(),
            stderr=subprocess.PIPE,
        )
        for name, targets in (("both", tables), ("one", tables[:1]))
    ]
    messages = [run.communicate()[1].decode() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], messages
    assert sum("waiting until it has ended" in text for text in messages) == 1
    assert all((checkout.folder / table).is_file() for table in tables)
    expected = finished_study.hashes()
    shared_hashes = {name: digest for name, digest in checkout.hashes().items() if name in expected}
    assert "sample/jobs.parquet" in shared_hashes
    assert shared_hashes == {name: expected[name] for name in shared_hashes}


def test_other_settings_of_a_shared_trace_are_refused_before_the_first_job(study):
    config = config_of_both(study) | {"survival": {"max_steps": 50}}
    config["registry"]["sample"] = {"infra_failures": {"states": ["Failed"]}}
    refused = study.snakemake(check=False, **config)
    assert refused.returncode == 1
    assert "sample: also in the study sample, which has other settings" in refused.stderr
    assert "survival.max_steps is 50 here and 2000 there" in refused.stderr
    assert "registry.sample.infra_failures is {states: [Failed]} here and nothing there" in refused.stderr
    assert "ttf remove --study sample" in refused.stderr
    assert not (study.folder / "results/studies/both").exists()
    # Both settings are valid if the trace has two names.
    config["registry"]["other"] = {"format": "pai2020", "embedded": True, **config["registry"].pop("sample")}
    assert "ingest" in study.planned(**config | {"study": ["other", "mine"]})


@pytest.mark.parametrize(
    ("key", "value"),
    [("claims", ["a.yaml"]), ("publish", {"url": "x"}), ("scatter", {"jobs": 3}), ("of_an_older_version", 1)],
)
def test_what_no_trace_depends_on_may_differ(key, value):
    config = {"name": "a", "study": ["t"], "registry": {"t": {"title": "A"}}}
    other_config = {"name": "b", "study": ["t", "u"], "registry": {"t": {"title": "B"}, "u": {}}}
    studies.check_shared(config | {key: value}, {"b": other_config})
    studies.check_shared(config | {"seed": 1}, {"b": other_config | {"study": ["u"], "seed": 2}})
    with pytest.raises(ConfigError, match=r"registry\.t\.zone is nothing here and UTC there"):
        studies.check_shared(config, {"b": other_config | {"registry": {"t": {"zone": "UTC"}}}})


def test_replacing_a_study_of_the_same_name_prints_a_note():
    config = {"name": "study", "study": ["a", "b"]}
    assert (
        studies.describe_replacement(config, {})
        == ""
        == studies.describe_replacement(config, {"study": {"study": ["b", "a"]}})
    )
    note = studies.describe_replacement(config, {"study": {"study": ["c", "d"]}, "other": {"study": ["e"]}})
    assert note.startswith("note: the study study had the traces c, d, and has now a, b. To keep both, give")


def test_removing_a_study_names_what_goes_and_keeps_what_others_use(study):
    study.snakemake("--", "results/studies/both/config.yaml", "results/mine/jobs.parquet", **config_of_both(study))
    typed = ("remove", "--study", "both")
    plan = study.ttf(*typed).stdout
    removed_folders = {"results/studies/both", "logs/studies/both", "benchmarks/studies/both"}
    removed_folders |= {f"{kind}/mine" for kind in ("results", "logs", "benchmarks")}
    assert {line.removeprefix("would be removed: ") for line in plan.splitlines()[:-1]} == removed_folders
    assert "--yes" in plan
    hashes_before = study.hashes()
    study.ttf(*typed, "--yes")
    assert not any((study.folder / path).exists() for path in removed_folders)
    remaining = {name for name in hashes_before if not name.startswith(("mine/", "studies/both/"))}
    assert study.hashes().keys() == remaining
    assert "there is no such study here" in study.ttf(*typed).stderr
    assert study.planned(**SMALL) == set()


@pytest.mark.parametrize("is_sure", [False, True])
def test_a_link_is_not_removed_and_nothing_else_either(tmp_path, monkeypatch, capsys, is_sure):
    monkeypatch.chdir(tmp_path)
    Path("elsewhere/raw").mkdir(parents=True)
    Path("results/studies/t").mkdir(parents=True)
    Path("results/studies/t/config.yaml").write_text("{study: [t], registry: {}}")
    Path("results/t").symlink_to(tmp_path / "elsewhere")
    message = "error: results/t is a link: what it leads to is not removed. Remove the link first.\n"
    assert (remove("t", is_sure), *capsys.readouterr()) == (1, "", message)
    assert Path("elsewhere/raw").is_dir() and Path("results/studies/t").is_dir()


def test_an_empty_name_removes_nothing(folder, capsys):
    assert remove("", is_sure=True) == 1
    assert capsys.readouterr().err == "error: which study? ttf remove --study name\n"


# The study that a command selects ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return a folder with the studies `one`, made from a file, and then `two`."""
    monkeypatch.chdir(tmp_path)
    Path("one.yaml").write_text("study: [sample]")
    for name, files, arguments in (("one", ["one.yaml"], []), ("two", [], ["study=[openb]"])):
        (studies.STUDIES / name).mkdir(parents=True)
        (studies.STUDIES / name / "config.yaml").write_text("study: []\nregistry: {}\n")
        studies.remember_study(name, type("Settings", (), {"configfiles": files, "config_args": arguments}))
    return tmp_path


NO_OPTIONS = dict.fromkeys(("study", "config", "trace", "data"), "")


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ({}, ["--config", "study=[openb]"]),
        ({"study": "one"}, ["--configfile", "one.yaml"]),
        ({"config": "my.yaml"}, ["--configfile", "my.yaml"]),
        ({"config": "-n"}, ["--configfile", "./-n"]),
        ({"trace": "openb,sample"}, ["--config", "study=[openb,sample]"]),
        ({"trace": "all"}, ["--config", "study=[sample, sample_philly, sample_slurm]"]),
        ({"config": "my.yaml", "trace": "a"}, ["--configfile", "my.yaml", "--config", "study=[a]"]),
        ({"trace": "a", "is_remote": True}, ["--config", "study=[a]", "scatter={jobs: 16}"]),
    ],
)
def test_options_of_make_become_arguments_of_snakemake(folder, capsys, options, arguments):
    assert resolve_arguments(**NO_OPTIONS | options) == arguments
    note = capsys.readouterr().err
    if not options:
        assert note == "study two, the most recent; --study for another: one\n"


def test_a_folder_of_data_becomes_a_study_whose_configuration_can_be_edited(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout.folder)
    write_pods(checkout, pods(9))
    options = NO_OPTIONS | {"data": "raw/mine"}
    file = Path("results/studies/mine/study.yaml")
    assert resolve_arguments(**options) == ["--configfile", str(file)]
    message = capsys.readouterr().err
    assert "openb: openb_pod_list_default.csv has the columns" in message
    assert f"to be kept and edited: {file}" in message
    # The comment about the files changes as the folder grows.
    file.write_text(f"# One file.\n{file.read_text()}")
    assert resolve_arguments(**options) == ["--configfile", str(file)]
    assert "edited," not in capsys.readouterr().err
    page = "results/studies/mine/report/index.html"
    assert "render_page" in checkout.planned("--configfile", str(file), "--", page)
    file.write_text(file.read_text() + "survival: {max_steps: 50}\n")
    assert resolve_arguments(**options) == ["--configfile", str(file)]
    assert f"{file} was edited, and is used as it stands." in capsys.readouterr().err
    assert studies.find_arguments("mine") == ["--configfile", str(file)]
    with pytest.raises(ConfigError, match="there is no such folder"):
        resolve_arguments(**NO_OPTIONS | {"data": "nowhere"})
    with pytest.raises(ConfigError, match="give data alone or with --config"):
        resolve_arguments(**options | {"trace": "mine"})


def test_in_a_new_folder_it_is_the_study_of_the_defaults(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert resolve_arguments(**NO_OPTIONS) == []
    assert capsys.readouterr().err == ""
    with pytest.raises(ConfigError, match="has no study yet"):
        resolve_arguments(**NO_OPTIONS | {"study": "one"})


def test_a_study_whose_file_is_gone_is_made_as_it_was(folder):
    Path("one.yaml").unlink()
    assert studies.find_arguments("one") == ["--configfile", "results/studies/one/config.yaml"]
    with pytest.raises(ConfigError, match=r"--study onee: there is no such study here; did you mean one\?"):
        resolve_arguments(**NO_OPTIONS | {"study": "onee"})
    studies.forget_study("two")
    shutil.rmtree(studies.STUDIES / "two")
    assert studies.find_last_study() == "one"


def test_a_run_is_remembered_also_where_nothing_is_to_do(finished_study):
    finished_study.snakemake(**SMALL)
    memory = json.loads((finished_study.folder / studies.MEMORY).read_text())
    assert memory == {"last": "sample", "typed": {"sample": ["--configfile", "my.yaml"]}, "written": {}}


@pytest.fixture
def run_make(tmp_path) -> Callable:
    """Return a function that runs make in a folder whose programs record their arguments."""
    for name in ("python", "ttf"):
        program = tmp_path / ".venv" / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text('#!/bin/sh\nprintf "%s\\0" "$@" > said\n')
        program.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for folder in ("locks", ".venv"):
        shutil.copytree(ROOT / "locks", tmp_path / folder, dirs_exist_ok=True)

    def run(target: str, *arguments: str, **exported: str) -> list[str]:
        command = ["make", "--no-print-directory", target, *arguments]
        subprocess.run(command, cwd=tmp_path, env=environment() | exported, check=True, stdout=subprocess.DEVNULL)
        return (tmp_path / "said").read_text().split("\0")[:-1]

    return run


def test_exported_variables_of_common_names_have_no_effect(run_make):
    assert run_make("report", DATA="c") == ["report", "--config=", "--trace=", "--", ""]


@pytest.mark.parametrize(
    ("only", "arguments"),
    [
        ("", []),
        ("unit", ["tests/unit"]),
        ("tests/unit/", ["tests/unit"]),
        ("test_publish", ["tests/unit/test_publish.py", "tests/workflow/test_publish.py"]),
        ("unit/test_cox.py", ["tests/unit/test_cox.py"]),
        ("cox or survival", ["-k=cox or survival"]),
        ("fixtures", ["-k=fixtures"]),
        ("-x", ["-k=-x"]),
    ],
)
def test_only_is_a_folder_or_a_file_or_an_expression(monkeypatch, only, arguments):
    monkeypatch.chdir(ROOT)
    workers = [] if only == "unit/test_cox.py" else run_tests.WORKERS
    assert run_tests.pytest_arguments(only) == [*workers, *arguments]


def test_help_names_every_target():
    makefile = (ROOT / "Makefile").read_text()
    help_text = subprocess.run(["make", "-s", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    targets = re.search(r"\.PHONY: (.*)", makefile)[1].split()
    assert {*targets} == {line.partition(":")[0] for line in help_text.splitlines()}


HOSTILE = ["'; touch owned; '", '"; touch owned; "', "$(touch owned)", "`touch owned`", "$(shell touch owned)"]
HOSTILE += [
    "a\ntouch owned",
    "a\n\ttouch owned",
    "-rf",
    "--help",
    "a b",
    "../..",
    "#",
    "\\",
    "$$",
    "$HOME",
    "$",
    "%",
    "ü",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_what_is_typed_reaches_the_program_as_it_is_and_no_shell(run_make, tmp_path, value):
    arguments = run_make("report", *(f"{name}={value}" for name in ("CONFIG", "TRACE", "DATA")))
    assert arguments == ["report", f"--config={value}", f"--trace={value}", "--", value]
    assert f"--only={value}" in run_make("test", f"ONLY={value}")
    assert not (tmp_path / "owned").exists()


def test_a_profile_is_a_folder_or_one_that_is_shipped(tmp_path):
    words = find_profile("")
    assert words[:6] == ["--workflow-profile", "none", "--cores", "all", "--scheduler", "greedy"]
    assert words[-3:] == ["--rerun-incomplete", "--quiet", "host"] and "--printshellcmds" not in words
    assert find_profile("slurm") == ["--workflow-profile", str(ROOT / "profiles/slurm")]
    assert find_profile(str(tmp_path)) == ["--workflow-profile", str(tmp_path)]
    with pytest.raises(ConfigError, match="nor a profile of that name: default, kubernetes, slurm"):
        find_profile("slrum")


def test_a_trace_that_cannot_be_one(folder):
    for value in {*HOSTILE} - {"-rf", "--help"}:
        with pytest.raises(ConfigError, match=r"^--trace .*: expected names of traces"):
            resolve_arguments(**NO_OPTIONS | {"trace": value})
