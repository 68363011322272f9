"""Scripts forked from a process that has imported what they use."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from study import forked
from study.forked import Forks, fork_scripts
from study_runs import environment

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
SAYS = """
import json, os, sys, __main__
said = {"argv": sys.argv, "path": sys.path[0], "main": __main__.__file__, "name": __name__, "cwd": os.getcwd()}
said |= {"environment": dict(os.environ), "parent": os.getppid(), "stdin": sys.stdin.read()}
with open("said.json", "w") as file:
    json.dump(said, file)
"""


@pytest.fixture
def forks():
    # Nothing but what each test needs: the whole would take a second of each.
    made = Forks(preloaded=())
    yield made
    if "_server" in vars(made):
        made.close()


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="script.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_a_fork_is_what_python_would_have_started(forks, script, tmp_path):
    file = script(SAYS)
    assert forks.run(file, {"TTF_RUN": "1", "SAID": "caf\udce9"}) == 0
    said = json.loads(Path("said.json").read_text())
    started = {"argv": [file], "path": str(tmp_path), "main": file, "name": "__main__", "cwd": str(tmp_path)}
    assert said | started == said
    assert said["environment"] == dict(os.environ) | {"TTF_RUN": "1", "SAID": "caf\udce9"}
    assert said["parent"] == forks._server[1].pid
    assert said["stdin"] == ""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("raise SystemExit", 0),
        ("raise SystemExit(7)", 7),
        ("raise SystemExit('a text')", 1),
        ("x = 1 / 0", 1),
        ("one two", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_its_exit_code_is_that_of_the_script(forks, script, text, code):
    assert forks.run(script(text), {}) == code
    assert forks.run(script(""), {}) == 0, "the next one is not concerned"


def test_what_is_done_at_the_end_is_done(forks, script):
    file = script("import atexit, sys\natexit.register(lambda: open('end', 'w').close())\nsys.exit(3)")
    assert forks.run(file, {}) == 3
    assert Path("end").exists()


def test_forks_run_at_the_same_time(forks, script):
    # Each ends only when all have begun.
    file = script(
        "import os, pathlib, time\n"
        "pathlib.Path(f'begun-{os.getpid()}').touch()\n"
        "while len(list(pathlib.Path().glob('begun-*'))) < 8: time.sleep(0.01)\n"
    )
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: forks.run(file, {}), range(8))) == [0] * 8


def test_what_a_script_has_used_is_told_exactly(forks, script):
    from snakemake.benchmark import BenchmarkRecord

    file = script("import time\nx = bytearray(200_000_000)\nwhile time.process_time() < 0.3: pass")
    record = BenchmarkRecord()
    assert forks.run(file, {}, record) == 0
    # A moment less than half a second: Snakemake looks at the start alone.
    assert record.data_collected
    assert record.cpu_time > 0.25
    assert record.max_rss > 200_000_000 / 2**20
    assert record.running_time > 0.25


POLARS = """
import sys
sys.path.append({scripts!r})
there = "polars" in sys.modules
from ttf.entry import limit_libraries
limit_libraries(3)
import polars as pl
frame = pl.DataFrame({{"x": range(50_000)}})
sizes = frame.lazy().group_by(pl.col("x") % 7).agg(pl.len()).collect(engine="streaming")
print(there, pl.thread_pool_size(), sizes["len"].sum(), file=open("said", "w"))
"""


def test_polars_has_been_imported_and_takes_the_threads_of_the_job(script):
    forks, file = Forks(preloaded=("polars",)), script(POLARS.format(scripts=str(SCRIPTS)))
    try:
        # What has not been imported when a script is asked for, it imports itself.
        assert forks.run(script("", "first.py"), {}) == 0
        assert any(forks.run(file, {}) == 0 and Path("said").read_text() == "True 3 50000\n" for _ in range(20))
    finally:
        forks.close()


def test_a_process_that_cannot_be_forked_any_more(forks, script):
    assert forks.run(script(""), {}) == 0
    forks._server[1].kill()
    forks._server[1].wait()
    assert forks.run(script(""), {}) is None


def test_what_cannot_be_imported_concerns_those_who_use_it(script):
    forks = Forks(preloaded=("no_such_module",))
    try:
        assert [forks.run(script(text), {}) for text in ("", "import no_such_module", "")] == [0, 1, 0]
    finally:
        forks.close()


def test_a_request_that_is_too_long_is_none(forks, script):
    assert forks.run(script(""), {"LONG": "x" * 5_000_000}) is None
    assert forks.run(script(""), {}) == 0


def test_a_script_ends_with_the_process_that_it_was_forked_from(forks, script):
    file = script("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)")
    codes = []
    waiting = threading.Thread(target=lambda: codes.append(forks.run(file, {})))
    waiting.start()
    while not (Path("pid").exists() and Path("pid").read_text()):
        time.sleep(0.01)
    process = psutil.Process(int(Path("pid").read_text()))
    forks._server[1].kill()
    waiting.join(10)
    assert codes == [-signal.SIGKILL]
    assert not psutil.wait_procs([process], 10)[1]


def test_it_ends_with_the_run(script):
    code = (
        "import sys; sys.path[:0] = [{!r}, {!r}]\n"
        "from study.forked import Forks; forks = Forks(()); forks.run({!r}, {{}})\n"
        "print(forks._server[1].pid, flush=True); {}"
    )
    paths = [str(SCRIPTS.parent / "workflow"), str(SCRIPTS)]
    for end in ("", "import os; os.kill(os.getpid(), 9)"):
        run = subprocess.run([sys.executable, "-c", code.format(*paths, script(""), end)], stdout=subprocess.PIPE)
        deadline = time.monotonic() + 10
        while psutil.pid_exists(int(run.stdout)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not psutil.pid_exists(int(run.stdout))


@pytest.fixture
def execute(monkeypatch, script):
    """Snakemake's way to start a script, once it may be a fork: of a script of Snakemake's, whether it was forked."""
    from snakemake.script import PythonScript

    monkeypatch.setattr(forked, "PRELOADED", ())
    monkeypatch.setattr(Forks.__init__, "__defaults__", ((),))
    cold = []
    monkeypatch.setattr(PythonScript, "_execute_cmd", lambda *given, **named: cold.append(named))

    def run(text="", jobs=100, python=True, **changes):
        fork_scripts(jobs)
        given = {"container_img": None, "conda_env": None, "env_modules": None, "resources": {}}
        asked = SimpleNamespace(**given | {"bench_record": None} | changes)
        cold.clear()
        PythonScript._execute_cmd(asked, "python script.py", fname=script(text), is_python_script=python)
        return not cold

    return run


def test_scripts_that_ask_for_little_memory_are_forked(execute):
    assert execute()
    assert execute(resources={"mem_mb": 700})
    assert not execute(resources={"mem_mb": 1700})


@pytest.mark.parametrize(
    "changes",
    [{"jobs": 1}, {"python": False}, {"container_img": "image"}, {"conda_env": "env"}, {"env_modules": "modules"}],
)
def test_others_are_not(execute, changes):
    assert not execute(**changes)


def test_a_failed_script_is_an_error_as_ever(execute):
    with pytest.raises(subprocess.CalledProcessError) as error:
        execute("raise SystemExit(3)")
    assert error.value.returncode == 3


def test_its_temporary_files_lie_where_snakemake_says(execute, tmp_path):
    (tmp_path / "here").mkdir()
    says = "import os, tempfile; print(tempfile.gettempdir(), os.environ['TTF_RUN'], file=open('said', 'w'))"
    assert execute(says, resources={"tmpdir": str(tmp_path / "here")})
    assert Path("said").read_text() == f"{tmp_path / 'here'} {os.getpid()}\n"


def test_where_the_system_tells_no_end_of_a_process_nothing_is_forked(execute, monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    assert not execute()


START = """
import atexit, sys
sys.path[:0] = [{scripts!r}]
import run_study
said = lambda name: "none" if name not in sys.modules else "shut off" if sys.modules[name] is None else "imported"
atexit.register(lambda: print(*map(said, ["snakemake.report", "numpy"]), file=sys.stderr))
run_study.main([{trace!r}, *{words!r}])
"""


@pytest.mark.parametrize(
    ("words", "said"), [(["--dry-run"], "shut off none"), (["--dry-run", "--report", "report.html"], "imported none")]
)
def test_a_start_imports_nothing_for_a_report_that_is_not_asked_for(tmp_path, words, said):
    """And leaves NumPy to the analyses."""
    code = START.format(
        scripts=str(SCRIPTS), trace="--trace=sample", words=["--snakefile", str(ROOT / "Snakefile"), *words]
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment()
    )
    assert run.stderr.splitlines()[-1] == said
