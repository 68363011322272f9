"""What a rule script does around its one call."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from study.progress import failure
from ttf.engine.errors import StudyError
from ttf.engine.process.entry import run_rule
from ttf.engine.process.machine import OF_LIBRARIES

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """run_rule is for a process of its own: here that is the tests', which Ctrl-C ends as ever."""
    monkeypatch.setattr("ttf.engine.process.entry.end_job_on_request", lambda: None)
    for name in ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "7")
    for name in ("NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("POLARS_ENGINE_AFFINITY", "auto")
    monkeypatch.setenv("POLARS_ROW_GROUP_PREFETCH_SIZE", "7")


@pytest.fixture
def job(tmp_path):
    """What Snakemake hands to a script."""

    def make(**changes):
        given = {
            "rule": "count",
            "threads": 2,
            "wildcards": SimpleNamespace(trace="mine"),
            "log": [str(tmp_path / "logs" / "mine" / "count.log")],
        }
        return SimpleNamespace(**given | changes)

    return make


def log_of(snakemake):
    return Path(snakemake.log[0]).read_text(encoding="utf-8")


def test_a_line_of_the_log(job, capsys):
    run_rule(lambda snakemake: f"{snakemake.threads} pods", job())
    assert log_of(job()) == "mine: count: 2 pods\n"  # without seconds, which differ from run to run
    run_rule(lambda snakemake: None, job(wildcards=SimpleNamespace()))
    assert log_of(job()) == "count\n"
    assert capsys.readouterr() == ("", ""), "the terminal is told from the log"


def test_a_study_error_is_its_message_alone(job):
    def main(snakemake):
        raise StudyError("data/x.csv: line 3: broken.\n  Mend it.")

    with pytest.raises(SystemExit) as stop:
        run_rule(main, job())
    assert stop.value.code == 1
    assert log_of(job()) == "data/x.csv: line 3: broken.\n  Mend it.\n"


def test_another_error_leaves_its_traceback_in_the_log(job):
    def main(snakemake):
        raise ValueError("first line\nsecond line")

    with pytest.raises(SystemExit) as stop:
        run_rule(main, job())
    assert stop.value.code == 1
    assert log_of(job()).startswith("Traceback (most recent call last)")
    assert log_of(job()).endswith("ValueError: first line\nsecond line\n")


@pytest.mark.parametrize("error", [StudyError("caf\udce9.csv: broken"), KeyError("caf\udce9")])
def test_a_file_name_that_is_not_utf8(job, error):
    def main(snakemake):
        raise error

    with pytest.raises(SystemExit) as stop:
        run_rule(main, job())
    assert stop.value.code == 1
    assert "\\udce9" in log_of(job())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_stops_the_run_is_not_held_up(job, error):
    def main(snakemake):
        raise error

    with pytest.raises(error):
        run_rule(main, job())


def test_threads_are_limited_before_the_work(job):
    seen = {}
    run_rule(lambda snakemake: seen.update(os.environ), job(threads=3))
    assert seen["POLARS_MAX_THREADS"] == "3"
    assert seen["OPENBLAS_NUM_THREADS"] == seen["OMP_NUM_THREADS"] == seen["MKL_NUM_THREADS"] == "1"
    assert seen["POLARS_ENGINE_AFFINITY"] == "in-memory"
    assert seen["POLARS_ROW_GROUP_PREFETCH_SIZE"] == "1"


ABORTED = """
import os, sys, warnings
from types import SimpleNamespace
from ttf.engine.process.entry import run_rule

def main(snakemake):
    warnings.warn("of Python")
    os.write(2, sys.argv[2].encode())
    os.abort()

run_rule(main, SimpleNamespace(rule="count", threads=1, wildcards=SimpleNamespace(), log=[sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("memory allocation of 8388608 bytes failed\nstack backtrace:\n   0: main\n", "there is not enough memory. "),
        ("malloc(): corrupted top size\n", "It ended without a word. "),
    ],
)
def test_what_a_library_writes_when_it_ends_the_process_stays_in_the_log(tmp_path, written, told):
    """No stack trace of C or Rust on the terminal: the person there is told what it means."""
    log = tmp_path / "count.log"
    command = [sys.executable, "-c", ABORTED, str(log), written]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(SCRIPTS)}, capture_output=True, text=True)
    assert done.returncode < 0 and "UserWarning: of Python" in done.stderr
    assert not any(line in done.stderr for line in written.splitlines())
    assert log.read_text() == f"{OF_LIBRARIES}\n{written}"
    words = failure([log], 0)
    assert words.startswith(told) and words.endswith(f"What libraries wrote is in {log}")


def test_a_job_that_was_killed_has_no_words_in_its_log(tmp_path):
    log = tmp_path / "count.log"
    log.write_text(f"{OF_LIBRARIES}\n")
    assert failure([log], 0) == ""


NUMBERS = """
import hashlib
from ttf.engine.process.entry import limit_libraries
limit_libraries(1)
import numpy as np
x = np.random.default_rng(1).uniform(1e-6, 30, 20_000)
square = x[:3600].reshape(60, 60)
found = [np.exp(x), np.log(x), np.power(x, 1.5), np.argsort(np.round(x)), square @ square.T, np.linalg.inv(square)]
print(*(hashlib.sha256(of.tobytes()).hexdigest() for of in found))
"""
# As if it were another processor: those before AVX-512, and old ones.
PROCESSORS = [
    {},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Zen"},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Prescott"},
]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other code, other digits")
def test_no_digit_depends_on_the_type_of_processor():
    def numbers(processor):
        surroundings = os.environ | {"PYTHONPATH": str(SCRIPTS)} | processor
        return subprocess.run([sys.executable, "-c", NUMBERS], env=surroundings, capture_output=True, check=True).stdout

    assert len(set(map(numbers, PROCESSORS))) == 1
