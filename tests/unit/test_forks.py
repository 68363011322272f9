"""Scripts as forks of one process, and the executor of Snakemake that runs the scripts of small jobs so."""

import json
import os
import pickle
import signal
import subprocess
import sys
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
TOLD = pickle.dumps(SimpleNamespace(rule="fit", params={"text": "caf\udce9"}))
PYTHONPATH = os.pathsep.join(str(ROOT / folder) for folder in ("workflow/plugins", "workflow", "scripts"))


class Forks(forks_module.Forks):
    def code(self, file, **more):
        """The exit code of a script; None where it could not be started."""
        ended = self.run(Path(file), TOLD, os.environ | more)
        return ended and ended.code


@pytest.fixture(params=[()])
def forks(request):
    """Nothing is imported but what a test needs: the whole would take a second of each."""
    made = Forks(request.param)
    yield made
    made.close()


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="script.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


SAYS = """
import json, os, sys
said = {"argv": sys.argv, "path": sys.path[0], "file": __file__, "name": __name__, "cwd": os.getcwd()}
said |= {"environment": dict(os.environ), "parent": os.getppid(), "stdin": sys.stdin.read(), "told": vars(snakemake)}
with open("said.json", "w") as file:
    json.dump(said, file)
"""


def test_a_fork_is_what_python_would_have_started(forks, script, tmp_path):
    file = script(SAYS)
    assert forks.code(file, SAID="caf\udce9") == 0
    assert json.loads(Path("said.json").read_text()) == {
        "argv": [file],
        "path": str(tmp_path),
        "file": file,
        "name": "__main__",
        "cwd": str(tmp_path),
        "environment": dict(os.environ) | {"SAID": "caf\udce9"},
        "parent": forks._server[1].pid,
        "stdin": "",
        "told": vars(pickle.loads(TOLD)),
    }


AT_ITS_END = "import atexit; atexit.register(lambda: open('end', 'w').close()); "


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("raise SystemExit", 0),
        (f"{AT_ITS_END}raise SystemExit(7)", 7),
        ("raise SystemExit('a text')", 1),
        (f"{AT_ITS_END}x = 1 / 0", 1),
        ("one two", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_the_exit_code_is_that_of_the_script(forks, script, text, code):
    assert forks.code(script(text)) == code
    assert Path("end").exists() == text.startswith(AT_ITS_END)
    assert forks.code(script("")) == 0, "the next one is not concerned"


def test_forks_run_at_the_same_time(forks, script):
    # Each ends only when all have begun.
    file = script(
        "import os, pathlib, time\n"
        "pathlib.Path(f'begun-{os.getpid()}').touch()\n"
        "while len(list(pathlib.Path().glob('begun-*'))) < 8: time.sleep(0.01)\n"
    )
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: forks.code(file), range(8))) == [0] * 8


def test_what_a_script_has_used_is_told_exactly(forks, script):
    child = "import time\nx = bytearray(200_000_000)\nwhile time.process_time() < 0.5: pass"
    file = script(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    start = time.monotonic()
    ended = forks.run(Path(file), TOLD, os.environ)
    assert 0.5 < ended.processor_s < ended.wall_s + 0.1
    assert 0.5 < ended.wall_s <= time.monotonic() - start
    assert 200_000_000 < ended.most_mb * 2**20 < 400_000_000


POLARS = """
import sys
sys.path.append({scripts!r})
there = "polars" in sys.modules
from ttf.engine.process.entry import limit_libraries
limit_libraries(3)
import polars as pl
frame = pl.DataFrame({{"x": range(50_000)}})
sizes = frame.lazy().group_by(pl.col("x") % 7).agg(pl.len()).collect(engine="streaming")
print(there, pl.thread_pool_size(), sizes["len"].sum(), file=open("said", "w"))
"""


@pytest.mark.parametrize("forks", [("polars",)], indirect=True)
def test_polars_has_been_imported_and_takes_the_threads_of_the_job(forks, script):
    file = script(POLARS.format(scripts=str(ROOT / "scripts")))
    # What has not been imported when a script is asked for, it imports itself.
    assert forks.code(script("", "first.py")) == 0
    assert any(forks.code(file) == 0 and Path("said").read_text() == "True 3 50000\n" for _ in range(20))


@pytest.mark.parametrize("forks", [("no_such_module",)], indirect=True)
def test_what_cannot_be_imported_concerns_those_who_use_it(forks, script):
    assert [forks.code(script(text)) for text in ("", "import no_such_module", "")] == [0, 1, 0]


def test_what_cannot_be_started_is_none(forks, script, monkeypatch):
    assert forks.code(script(""), LONG="x" * 5_000_000) is None
    assert forks.code(script("")) == 0
    forks.close()
    assert forks.code(script("")) is None
    assert forks_module.can_fork()
    monkeypatch.delattr(os, "pidfd_open")
    assert not forks_module.can_fork()


ENDS = """
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
    "end", ["forks.close(); waiting.join(); sys.exit(ended[0].code + 9)", "", "os.kill(os.getpid(), 9)"]
)
def test_scripts_and_the_process_that_they_are_forks_of_end_with_the_run(script, end):
    script("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)")
    own = environment() | {"PYTHONPATH": PYTHONPATH}
    run = subprocess.run([sys.executable, "-c", ENDS + end], stdout=subprocess.PIPE, env=own)
    assert run.returncode == (-9 if "kill" in end else 0)
    deadline = time.monotonic() + 10
    while (left := [*filter(is_running, map(int, run.stdout.split()))]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


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
        script: "scripts/say.py"
"""
SAY = """
import json, os, tempfile
said = {name: getattr(snakemake, name) for name in ("rule", "threads", "scriptdir")}
said |= {name: dict(getattr(snakemake, name).items()) for name in ("input", "params", "wildcards", "resources")}
said |= {"log": [*snakemake.log], "cwd": os.getcwd(), "temporary": tempfile.gettempdir()}
if snakemake.rule == "broken":
    raise ValueError("it is broken")
with open(snakemake.output[0], "w") as file:
    json.dump(said | {"forked": type(snakemake).__name__ == "SimpleNamespace"}, file)
"""


@pytest.fixture
def run(tmp_path):
    """Snakemake, run on a workflow of some small jobs and a large one: its process, and what each job said."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/say.py").write_text(SAY)

    def run_snakemake(*words):
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--executor", "forks", "--logger", "progress"]
        command += ["--default-resources", f"tmpdir='{tmp_path}'", *words]
        own = environment() | {"PYTHONPATH": PYTHONPATH}
        done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True)
        return done, {file.stem: json.loads(file.read_text()) for file in tmp_path.glob("*.json")}

    return run_snakemake


def test_small_jobs_are_forked_and_are_told_what_snakemake_tells(run, tmp_path):
    """By the Snakemake that is installed, whatever its version."""
    done, said = run("--keep-going", "all", "broken.json")
    forked = {name: job.pop("forked") for name, job in said.items()}
    assert forked == {"little": True, "large": False, "third": True, "fourth": True}
    assert said["little"]["temporary"] == said["little"]["cwd"] == str(tmp_path)
    resources = [said[name].pop("resources") for name in ("little", "large")]
    assert json.loads(json.dumps(said["little"]).replace("little", "large")) == said["large"]
    assert [about["mem_mb"] for about in resources] == [700, 1700] and resources[0].keys() == resources[1].keys()
    little, large = ((tmp_path / f"{name}.tsv").read_text().splitlines() for name in ("little", "large"))
    costs = dict(zip(*(line.split("\t") for line in little), strict=True))
    assert [*costs] == large[0].split("\t")
    assert float(costs["s"]) > 0 and float(costs["cpu_time"]) > 0 and float(costs["max_rss"]) > 10
    assert done.returncode == 1
    assert "5 jobs to run; the log of each is in logs/." in done.stderr
    assert done.stderr.count("\nerror in broken\n") == 1
    assert "ValueError: it is broken" in done.stderr
    assert "RuleException" not in done.stderr and "CalledProcessError" not in done.stderr


@pytest.mark.parametrize("words", [["--sdm", "env-modules"], ["--", "little.json"]], ids=["deployed", "few"])
def test_others_are_not(run, words):
    done, said = run(*words)
    assert done.returncode == 0, done.stderr
    assert "little" in said and not any(job["forked"] for job in said.values())
