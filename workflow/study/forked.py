"""Scripts of jobs forked from a process that has imported what they use: to start Python and its libraries takes longer
than most jobs of a small trace.

Run as a script it is that process. Only such a one can be forked as has no threads at work: Polars starts its own when
it is first used, which is here in a fork.
"""

import atexit
import contextlib
import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

# In the order in which the jobs of a study first use them.
PRELOADED = (
    "snakemake.iocontainers",
    "snakemake.logging",
    "snakemake.io",
    "polars",
    "numpy",
    "scipy.special",
    "statsmodels.genmod.generalized_linear_model",
    "statsmodels.stats.multitest",
    "statsmodels.stats.proportion",
    "altair",
    "yaml",
    "jinja2",
    "great_tables",
)
_FEWEST = 4
# A job that asks for more memory starts by itself: it is no short one, and Polars has a thread that gives memory back
# to the system, which a fork has not.
_MOST_MB = 1024
_LONGEST_REQUEST = 1 << 17
# The kernel's number for: a signal when the process that forked this one has ended.
_PR_SET_PDEATHSIG = 1


def fork_scripts(jobs: int) -> None:
    """From now on Snakemake's Python scripts are forks of one process, where they are run by the Python of this one.

    jobs: how many there are to run; for a few it would cost more than it saves. Where the system cannot do that, or it
    fails, a script starts as it always does.
    """
    if jobs < _FEWEST or not _can_fork():
        return
    from snakemake.script import PythonScript

    forks, start = Forks(), PythonScript._execute_cmd

    def execute(script: Any, command: str, **given: Any) -> Any:
        elsewhere = script.container_img or script.conda_env or script.env_modules
        is_small = script.resources.get("mem_mb", 0) <= _MOST_MB
        if given.get("is_python_script") and is_small and not elsewhere:
            code = forks.run(given["fname"], _environment(script), script.bench_record)
            if code is not None:
                if code:
                    raise subprocess.CalledProcessError(code, given["fname"])
                return None
        return start(script, command, **given)

    PythonScript._execute_cmd = execute


def _can_fork() -> bool:
    """Linux tells of the end of a process by a file; elsewhere the libraries may not be forked at all."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _environment(script: Any) -> dict[str, str]:
    """What Snakemake sets for a script, but for what the script sets itself (ttf.entry)."""
    folder = script.resources.get("tmpdir")
    return {"TTF_RUN": str(os.getpid())} | ({"TMPDIR": folder} if folder else {})


class Forks:
    """Forks of one process, which is started with the first of them. preloaded: the modules that it imports."""

    def __init__(self, preloaded: Sequence[str] = PRELOADED) -> None:
        self._preloaded, self._starting = preloaded, threading.Lock()

    @cached_property
    def _server(self) -> tuple[socket.socket, subprocess.Popen]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            server = subprocess.Popen([sys.executable, __file__, *self._preloaded], stdin=theirs)
        atexit.register(self.close)
        return ours, server

    def run(self, file: str, environment: dict[str, str], record: Any = None) -> int | None:
        """The exit code of a script; None where it could not be started. record: Snakemake's, of what it costs."""
        from snakemake.benchmark import benchmarked

        ours, theirs = socket.socketpair()
        with ours, ours.makefile("r") as told:
            try:
                with theirs:
                    with self._starting:
                        control, _ = self._server
                    request = json.dumps([file, str(Path.cwd()), dict(os.environ) | environment]).encode()
                    socket.send_fds(control, [request], [theirs.fileno()])
                process = int(told.readline())
            except (OSError, ValueError):
                return None
            with benchmarked(False if record is None else process, record):
                # Not before somebody looks at what it costs.
                ours.send(b"\n")
                code, *costs = told.readline().split() or [-signal.SIGKILL]
            if record is not None and costs:
                # Of the whole of it, where Snakemake looks every half second.
                record.cpu_time, record.max_rss = map(float, costs)
                record.data_collected = True
        return int(code)

    def close(self) -> None:
        control, server = self._server
        control.close()
        server.kill()
        server.wait()


def _serve(control: socket.socket, preloaded: Iterator[str]) -> tuple[socket.socket, list]:
    """Fork for each request, and tell how it ended; between two, import what is still to be.

    Returns in each fork, with its request; this process itself ends.
    """
    at_work: dict[int, tuple[int, socket.socket]] = {}
    while True:
        module = next(preloaded, None)
        ready, _, _ = select.select([control, *at_work], [], [], 0 if module else None)
        if control in ready:
            request, descriptors, _, _ = socket.recv_fds(control, _LONGEST_REQUEST, 1)
            if not request:
                os._exit(0)
            job = socket.socket(fileno=descriptors[0])
            # To collect garbage among all that is imported would copy it, in each fork: 2.8 s of 15 s of 51 jobs.
            gc.freeze()
            # Little of a job is garbage: to look for it at every 700th object takes 3% of the time of a sample.
            gc.set_threshold(100_000, 20, 20)
            if not (process := os.fork()):
                for ended, (_, other) in at_work.items():
                    os.close(ended)
                    other.close()
                return job, json.loads(request)
            at_work[os.pidfd_open(process)] = process, job
        for ended in at_work.keys() & ready:
            process, job = at_work.pop(ended)
            os.close(ended)
            _, status, used = os.wait4(process, 0)
            code, seconds = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
            with job, contextlib.suppress(OSError):  # nobody is there any more
                job.send(f"{code} {seconds} {used.ru_maxrss / 1024}\n".encode())
        if module:
            # The script that uses it will tell of it, also where there is no memory for it.
            with contextlib.suppress(ImportError, MemoryError, SystemError):
                __import__(module)


def _become(job: socket.socket, file: str, folder: str, environment: dict[str, str]) -> None:
    """Make this fork what `python file` would be, once it is told to go on; it ends with the script."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    with job:
        job.send(f"{os.getpid()}\n".encode())
        if not job.recv(1):
            os._exit(1)
    with open(os.devnull) as nothing:  # noqa: PTH123 as a number it is used
        os.dup2(nothing.fileno(), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:], sys.path[0] = [file], str(Path(file).parent)
    code = None
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    end_at_once(code)


if __name__ == "__main__":
    # Ctrl-C reaches all processes of a terminal, and the run ends its jobs itself (ttf.stopping).
    for request in (signal.SIGINT, signal.SIGHUP):
        signal.signal(request, signal.SIG_IGN)
    sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
    from ttf.entry import limit_libraries
    from ttf.stopping import end_at_once

    limit_libraries(1)
    asked = _serve(socket.socket(fileno=os.dup(0)), iter(sys.argv[1:]))
    _become(asked[0], *asked[1])
