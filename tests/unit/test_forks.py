"""Scripts run as forks of one process, and the Snakemake executor that runs small jobs this way."""

import json
import os
import pickle
import signal
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from study_runs import ROOT, environment

sys.path.append(str(ROOT / "workflow/plugins"))
forks_module = import_module("snakemake_executor_plugin_forks.forks")
JOB_BYTES = pickle.dumps(SimpleNamespace(rule="fit", params={"text": "caf\udce9"}))
PYTHONPATH = os.pathsep.join(str(ROOT / folder) for folder in ("workflow/plugins", "workflow", "scripts"))


class Forks(forks_module.Forks):
    def exit_code(self, file, **variables):
        """Run a script and return its exit code, or None if it cannot start."""
        result = self.run(Path(file), JOB_BYTES, os.environ | variables)
        return result and result.code


@pytest.fixture(params=[()])
def forks(request):
    """Import only what a test needs; all libraries would take a second per test."""
    server = Forks(request.param)
    yield server
    server.close()


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="script.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


REPORT_SCRIPT = """
import json, os, sys
report = {"argv": sys.argv, "path": sys.path[0], "file": __file__, "name": __name__, "cwd": os.getcwd()}
report |= {"environment": dict(os.environ), "parent": os.getppid(), "stdin": sys.stdin.read(), "job": vars(snakemake)}
with open("report.json", "w") as file:
    json.dump(report, file)
"""


def test_a_fork_equals_a_new_python_process(forks, script, tmp_path):
    file = script(REPORT_SCRIPT)
    assert forks.exit_code(file, SAID="caf\udce9") == 0
    assert json.loads(Path("report.json").read_text()) == {
        "argv": [file],
        "path": str(tmp_path),
        "file": file,
        "name": "__main__",
        "cwd": str(tmp_path),
        "environment": dict(os.environ) | {"SAID": "caf\udce9"},
        "parent": forks._server[1].pid,
        "stdin": "",
        "job": vars(pickle.loads(JOB_BYTES)),
    }


EXIT_HOOK = "import atexit; atexit.register(lambda: open('end', 'w').close()); "


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        (f"{EXIT_HOOK}raise SystemExit(7)", 7),
        ("raise SystemExit('a text')", 1),
        (f"{EXIT_HOOK}x = 1 / 0", 1),
        ("one two", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_the_exit_code_is_that_of_the_script(forks, script, text, code):
    assert forks.exit_code(script(text)) == code
    assert Path("end").exists() == text.startswith(EXIT_HOOK)
    assert forks.exit_code(script("")) == 0, "the next script is unaffected"


def test_forks_run_at_the_same_time(forks, script):
    # Each script ends only after all have begun.
    file = script(
        "import os, pathlib, time\n"
        "pathlib.Path(f'begun-{os.getpid()}').touch()\n"
        "while len(list(pathlib.Path().glob('begun-*'))) < 8: time.sleep(0.01)\n"
    )
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: forks.exit_code(file), range(8))) == [0] * 8


def test_resources_used_by_a_script_are_exact(forks, script):
    child = "import time\nx = bytearray(200_000_000)\nwhile time.process_time() < 0.5: pass"
    file = script(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    start = time.monotonic()
    result = forks.run(Path(file), JOB_BYTES, os.environ)
    assert 0.5 < result.processor_s < result.wall_s + 0.1
    assert 0.5 < result.wall_s <= time.monotonic() - start
    assert 200_000_000 < result.max_mb * 2**20 < 400_000_000


POLARS = """
import sys
sys.path.append({scripts!r})
is_imported = "polars" in sys.modules
from ttf.engine.process.entry import limit_libraries
limit_libraries(3)
import polars as pl
frame = pl.DataFrame({{"x": range(50_000)}})
sizes = frame.lazy().group_by(pl.col("x") % 7).agg(pl.len()).collect(engine="streaming")
print(is_imported, pl.thread_pool_size(), sizes["len"].sum(), file=open("said", "w"))
"""


@pytest.mark.parametrize("forks", [("polars",)], indirect=True)
def test_imported_polars_uses_the_threads_of_the_job(forks, script):
    file = script(POLARS.format(scripts=str(ROOT / "scripts")))
    # A script imports a library itself if the server has not finished importing it.
    assert forks.exit_code(script("", "first.py")) == 0
    assert any(forks.exit_code(file) == 0 and Path("said").read_text() == "True 3 50000\n" for _ in range(20))


@pytest.mark.parametrize("forks", [("no_such_module",)], indirect=True)
def test_a_missing_library_fails_only_scripts_that_use_it(forks, script):
    assert [forks.exit_code(script(text)) for text in ("", "import no_such_module", "")] == [0, 1, 0]


def test_a_script_that_cannot_start_gives_none(forks, script, monkeypatch):
    assert forks.exit_code(script(""), LONG="x" * 5_000_000) is None
    assert forks.exit_code(script("")) == 0
    forks.close()
    assert forks.exit_code(script("")) is None
    assert forks_module.can_fork()
    monkeypatch.delattr(os, "pidfd_open")
    assert not forks_module.can_fork()


PARENT_SCRIPT = """
import os, pathlib, pickle, sys, threading, time
from snakemake_executor_plugin_forks.forks import Forks
forks, ended = Forks(()), []
script = pathlib.Path("script.py")
waiting = threading.Thread(target=lambda: ended.append(forks.run(script, pickle.dumps(None), os.environ)), daemon=True)
waiting.start()
while not (pathlib.Path("pid").exists() and pathlib.Path("pid").read_text()):
    time.sleep(0.01)
print(forks._server[1].pid, pathlib.Path("pid").read_text(), flush=True)
"""


@pytest.mark.parametrize(
    "last_line", ["forks.close(); waiting.join(); sys.exit(ended[0].code + 9)", "", "os.kill(os.getpid(), 9)"]
)
def test_scripts_and_their_server_end_with_the_run(script, last_line):
    script("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)")
    variables = environment() | {"PYTHONPATH": PYTHONPATH}
    run = subprocess.run([sys.executable, "-c", PARENT_SCRIPT + last_line], stdout=subprocess.PIPE, env=variables)
    assert run.returncode == (-9 if "kill" in last_line else 0)
    deadline = time.monotonic() + 10
    while (running := [*filter(is_running, map(int, run.stdout.split()))]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# The executor ---------------------------------------------------------------------------------------------------

SNAKEFILE = """
rule all:
    input: [f"{name}.json" for name in ("little", "large", "third", "fourth")]

for name, mem_mb in {"little": 700, "large": 1700, "third": 1, "fourth": 1, "broken": 1}.items():
    rule:
        name: name
        input: table="Snakefile"
        output: f"{name}.json"
        params: text="caf\u00e9", numbers={"x": [1.5]}
        log: f"{name}.log"
        benchmark: f"{name}.tsv"
        threads: 2
        resources: mem_mb=mem_mb
        script: "scripts/report.py"
"""
JOB_SCRIPT = """
import json, os, tempfile
report = {name: getattr(snakemake, name) for name in ("rule", "threads", "scriptdir")}
report |= {name: dict(getattr(snakemake, name).items()) for name in ("input", "params", "wildcards", "resources")}
report |= {"log": [*snakemake.log], "cwd": os.getcwd(), "temporary": tempfile.gettempdir()}
if snakemake.rule == "broken":
    raise ValueError("it is broken")
with open(snakemake.output[0], "w") as file:
    json.dump(report | {"forked": type(snakemake).__name__ == "SimpleNamespace"}, file)
"""


@pytest.fixture
def run(tmp_path):
    """Run Snakemake on some small jobs and a large one; return its process and the report of each job."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/report.py").write_text(JOB_SCRIPT)

    def run_snakemake(*words, python=sys.executable):
        command = [python, "-m", "snakemake", "--cores", "2", "--executor", "forks", "--logger", "progress"]
        command += ["--default-resources", f"tmpdir='{tmp_path}'", *words]
        packages = os.pathsep.join([PYTHONPATH, sysconfig.get_path("purelib")])
        variables = environment() | {"PYTHONPATH": packages}
        process = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
        return process, {file.stem: json.loads(file.read_text()) for file in tmp_path.glob("*.json")}

    return run_snakemake


def test_small_jobs_are_forked_with_the_inputs_of_snakemake(run, tmp_path):
    """This holds for the installed version of Snakemake."""
    process, reports = run("--keep-going", "all", "broken.json")
    forked = {name: job.pop("forked") for name, job in reports.items()}
    assert forked == {"little": True, "large": False, "third": True, "fourth": True}
    assert reports["little"]["temporary"] == reports["little"]["cwd"] == str(tmp_path)
    resources = [reports[name].pop("resources") for name in ("little", "large")]
    assert json.loads(json.dumps(reports["little"]).replace("little", "large")) == reports["large"]
    assert [limit["mem_mb"] for limit in resources] == [700, 1700] and resources[0].keys() == resources[1].keys()
    little, large = ((tmp_path / f"{name}.tsv").read_text().splitlines() for name in ("little", "large"))
    costs = dict(zip(*(line.split("\t") for line in little), strict=True))
    assert [*costs] == large[0].split("\t")
    assert float(costs["s"]) > 0 and float(costs["cpu_time"]) > 0 and float(costs["max_rss"]) > 10
    assert process.returncode == 1
    assert "5 jobs to run; the log of each is in logs/." in process.stderr
    assert process.stderr.count("\nerror in broken\n") == 1
    assert "ValueError: it is broken" in process.stderr
    assert "RuleException" not in process.stderr and "CalledProcessError" not in process.stderr


def test_a_run_with_deployed_software_is_not_forked(run):
    process, reports = run("--sdm", "env-modules", "--", "little.json")
    assert process.returncode == 0, process.stderr
    assert "little" in reports and not any(job["forked"] for job in reports.values())


def test_all_jobs_are_forked_if_the_path_of_python_has_a_space(run, tmp_path):
    """Snakemake's own start of a script splits such a path."""
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b/python").symlink_to(sys.executable)
    process, reports = run("--", "large.json", python=str(tmp_path / "a b/python"))
    assert process.returncode == 0, process.stderr
    assert reports["large"]["forked"]
