"""Scripts as forks of one process that has imported what they use.

Run as a script it is that process. Only such a one can be forked as has no threads at work: Polars starts its own when
it is first used, which is here in a fork.
"""

import atexit
import contextlib
import gc
import json
import os
import pickle
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

# In the order in which the jobs of a study first use them.
PRELOADED = (
    "snakemake.iocontainers",
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
_LONGEST_REQUEST = 1 << 17


class Ended(NamedTuple):
    """How a script ended, and what it used, its child processes included."""

    code: int
    wall_s: float
    processor_s: float = 0.0
    most_mb: float = 0.0


def can_fork() -> bool:
    """Linux tells of the end of a process by a file; elsewhere the libraries may not be forked at all."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


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

    def run(self, script: Path, told: bytes, environment: Mapping[str, str]) -> Ended | None:
        """Run a script with `snakemake`, pickled in `told`, in this folder; None where it could not be started."""
        ours, theirs = socket.socketpair()
        start = time.monotonic()
        with ours, ours.makefile("r") as answer:
            try:
                with theirs, tempfile.TemporaryFile() as given:
                    given.write(told)
                    given.seek(0)
                    with self._starting:
                        control, _ = self._server
                    request = json.dumps([str(script), str(Path.cwd()), dict(environment)]).encode()
                    socket.send_fds(control, [request], [theirs.fileno(), given.fileno()])
                if not answer.readline():
                    return None
            except OSError:
                return None
            code, *costs = answer.readline().split() or [-signal.SIGKILL]
        return Ended(int(code), time.monotonic() - start, *map(float, costs))

    def close(self) -> None:
        """End the process and what it has forked."""
        if "_server" in vars(self):
            control, server = self._server
            control.close()
            server.kill()
            server.wait()


def _serve(control: socket.socket, preloaded: Iterator[str]) -> tuple[int, list]:
    """Fork for each request, and tell how it ended; between two, import what is still to be.

    Returns in each fork, with a file of what the script is told, and the request; ends when nobody can ask any more.
    """
    at_work: dict[int, tuple[int, socket.socket]] = {}
    while True:
        module = next(preloaded, None)
        ready = select.select([control, *at_work], [], [], 0 if module else None)[0]
        if control in ready:
            request, descriptors, *_ = socket.recv_fds(control, _LONGEST_REQUEST, 2)
            if not request:
                sys.exit()
            job, told = socket.socket(fileno=descriptors[0]), descriptors[1]
            # To collect garbage among all that is imported would copy it, in each fork: 2.8 s of 15 s of 51 jobs.
            gc.freeze()
            # Little of a job is garbage: to look for it at every 700th object takes 3% of the time of a sample.
            gc.set_threshold(100_000, 20, 20)
            if not (process := os.fork()):
                for ended, (_, other) in at_work.items():
                    os.close(ended)
                    other.close()
                job.close()
                return told, json.loads(request)
            os.close(told)
            at_work[os.pidfd_open(process)] = process, job
            with contextlib.suppress(OSError):  # nobody is there any more
                job.send(b"started\n")
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


def _become(told: int, script: str, folder: str, environment: Mapping[str, str]) -> None:
    """Make this fork what `python script` would be; it ends with the script."""
    end_with_parent()
    with open(told, "rb") as given:
        snakemake = pickle.load(given)
    with open(os.devnull) as nothing:  # noqa: PTH123 as a number it is used
        os.dup2(nothing.fileno(), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:], sys.path[0] = [script], str(Path(script).parent)
    code = None
    try:
        runpy.run_path(script, {"snakemake": snakemake}, run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    end_at_once(code)


if __name__ == "__main__":
    # Ctrl-C reaches all processes of a terminal, and the run ends its jobs itself (ttf.engine.process.stopping).
    for request in (signal.SIGINT, signal.SIGHUP):
        signal.signal(request, signal.SIG_IGN)
    sys.path.append(str(Path(__file__).resolve().parents[3] / "scripts"))
    from ttf.engine.process.entry import limit_libraries
    from ttf.engine.process.stopping import end_at_once, end_with_parent

    limit_libraries(1)
    asked = _serve(socket.socket(fileno=os.dup(0)), iter(sys.argv[1:]))
    _become(asked[0], *asked[1])
