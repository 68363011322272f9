"""run_rule: logs, errors and thread limits around the call of a rule script."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ttf.engine.errors import StudyError
from ttf.engine.process.entry import run_rule
from ttf.engine.process.machine import OF_LIBRARIES
from ttf.study.running.progress import read_failure

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """run_rule changes its whole process; keep signals and variables of the test process."""
    monkeypatch.setattr("ttf.engine.process.entry.end_job_on_request", lambda: None)
    for name in ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "7")
    for name in ("NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("POLARS_ENGINE_AFFINITY", "auto")
    monkeypatch.setenv("POLARS_ROW_GROUP_PREFETCH_SIZE", "7")


@pytest.fixture
def job(tmp_path):
    """Return a function that makes Snakemake's job object."""

    def make(**changes):
        defaults = {
            "rule": "count",
            "threads": 2,
            "wildcards": SimpleNamespace(trace="mine"),
            "log": [str(tmp_path / "logs" / "mine" / "count.log")],
        }
        return SimpleNamespace(**defaults | changes)

    return make


def log_of(snakemake):
    return Path(snakemake.log[0]).read_text(encoding="utf-8")


def test_a_line_of_the_log(job, capsys):
    run_rule(lambda snakemake: f"{snakemake.threads} pods", job())
    assert log_of(job()) == "mine: count: 2 pods\n"  # without seconds, which differ from run to run
    run_rule(lambda snakemake: None, job(wildcards=SimpleNamespace()))
    assert log_of(job()) == "count\n"
    assert capsys.readouterr() == ("", ""), "only the log gets the line"


def fail(job, error):
    """Run a rule that raises the error; return its log."""

    def main(snakemake):
        raise error

    with pytest.raises(SystemExit) as stop:
        run_rule(main, job())
    assert stop.value.code == 1
    return log_of(job())


def test_a_study_error_logs_only_its_message(job):
    message = "data/x.csv: line 3: broken.\n  Mend it."
    assert fail(job, StudyError(message)) == f"{message}\n"


def test_other_errors_log_their_traceback(job):
    log = fail(job, ValueError("first line\nsecond line"))
    assert log.startswith("Traceback (most recent call last)")
    assert log.endswith("ValueError: first line\nsecond line\n")


def test_a_file_name_that_is_not_utf8(job):
    assert "\\udce9" in fail(job, StudyError("caf\udce9.csv: broken"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts_pass_through(job, error):
    def main(snakemake):
        raise error

    with pytest.raises(error):
        run_rule(main, job())


def test_threads_are_limited_before_the_work(job):
    variables = {}
    run_rule(lambda snakemake: variables.update(os.environ), job(threads=3))
    assert variables["POLARS_MAX_THREADS"] == "3"
    assert variables["OPENBLAS_NUM_THREADS"] == variables["OMP_NUM_THREADS"] == variables["MKL_NUM_THREADS"] == "1"
    assert variables["POLARS_ENGINE_AFFINITY"] == "in-memory"
    assert variables["POLARS_ROW_GROUP_PREFETCH_SIZE"] == "1"


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
    ("output", "expected"),
    [
        ("memory allocation of 8388608 bytes failed\nstack backtrace:\n   0: main\n", "there is not enough memory. "),
        ("malloc(): corrupted top size\n", "It ended without a message. "),
    ],
)
def test_output_of_an_aborting_library_stays_in_the_log(tmp_path, output, expected):
    """The terminal shows the meaning instead of a C or Rust stack trace."""
    log = tmp_path / "count.log"
    command = [sys.executable, "-c", ABORTED, str(log), output]
    process = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(SCRIPTS)}, capture_output=True, text=True)
    assert process.returncode < 0 and "UserWarning: of Python" in process.stderr
    assert not any(line in process.stderr for line in output.splitlines())
    assert log.read_text() == f"{OF_LIBRARIES}\n{output}"
    message = read_failure([log], 0)
    assert message.startswith(expected) and message.endswith(f"What libraries wrote is in {log}")


NUMBERS = """
import hashlib
from ttf.engine.process.entry import limit_libraries
limit_libraries(1)
import numpy as np
x = np.random.default_rng(1).uniform(1e-6, 30, 20_000)
square = x[:3600].reshape(60, 60)
arrays = [np.exp(x), np.log(x), np.power(x, 1.5), np.argsort(np.round(x)), square @ square.T, np.linalg.inv(square)]
print(*(hashlib.sha256(array.tobytes()).hexdigest() for array in arrays))
"""
# Imitate processors without AVX-512 and processors without AVX2.
PROCESSORS = [
    {},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Zen"},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Prescott"},
]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other code, other digits")
def test_no_digit_depends_on_the_type_of_processor():
    def numbers(processor):
        variables = os.environ | {"PYTHONPATH": str(SCRIPTS)} | processor
        return subprocess.run([sys.executable, "-c", NUMBERS], env=variables, capture_output=True, check=True).stdout

    assert len(set(map(numbers, PROCESSORS))) == 1
