"""Scripts as forks of one process that has already imported the libraries.

Run as a script, this module is that process. Only a process without active threads can fork safely: Polars starts its
threads when it is first used, which here is in a fork.
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
    "ttf.engine.storage.tables",
    "ttf.records.inputs",
    "numpy",
    "scipy.special",
    "ttf.stats.clustered",
    "scipy.stats",
    "altair",
    "yaml",
    "jinja2",
    "great_tables",
)
_MAX_REQUEST_BYTES = 1 << 17


class ScriptResult(NamedTuple):
    """The exit code of a script and its costs, child processes included."""

    code: int
    wall_s: float
    processor_s: float = 0.0
    max_mb: float = 0.0


def can_fork() -> bool:
    """Return whether the system can fork this process; only Linux reports the end of a process by a file."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


class Forks:
    """Forks of one process, which starts with the first fork. preloaded: the modules that it imports."""

    def __init__(self, preloaded: Sequence[str] = PRELOADED) -> None:
        self._preloaded, self._starting = preloaded, threading.Lock()

    @cached_property
    def _server(self) -> tuple[socket.socket, subprocess.Popen]:
        """Start the process on first use; return our end of its socket, and the process."""
        own_end, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with server_end:
            server = subprocess.Popen([sys.executable, __file__, *self._preloaded], stdin=server_end)
        atexit.register(self.close)
        return own_end, server

    def run(self, script: Path, pickled_snakemake: bytes, environment: Mapping[str, str]) -> ScriptResult | None:
        """Run a script in this folder with the pickled `snakemake` object; return None if it could not start."""
        own_end, server_end = socket.socketpair()
        start = time.monotonic()
        with own_end, own_end.makefile("r") as answer:
            try:
                with server_end, tempfile.TemporaryFile() as file:
                    file.write(pickled_snakemake)
                    file.seek(0)
                    with self._starting:
                        control, _ = self._server
                    request = json.dumps([str(script), str(Path.cwd()), dict(environment)]).encode()
                    socket.send_fds(control, [request], [server_end.fileno(), file.fileno()])
                if not answer.readline():
                    return None
            except OSError:
                return None
            code, *costs = answer.readline().split() or [-signal.SIGKILL]
        return ScriptResult(int(code), time.monotonic() - start, *map(float, costs))

    def close(self) -> None:
        """End the process and its forks."""
        if "_server" in vars(self):
            control, server = self._server
            control.close()
            server.kill()
            server.wait()


def _serve(control: socket.socket, preloaded: Iterator[str]) -> tuple[int, list]:
    """Fork for each request and report how the fork ended; import preloaded modules in between.

    Returns in each fork, with the file of the `snakemake` object and the request. Exits when the client is gone.
    """
    jobs_by_process: dict[int, tuple[int, socket.socket]] = {}
    while True:
        module = next(preloaded, None)
        ready = select.select([control, *jobs_by_process], [], [], 0 if module else None)[0]
        if control in ready:
            request, descriptors, *_ = socket.recv_fds(control, _MAX_REQUEST_BYTES, 2)
            if not request:
                sys.exit()
            job, snakemake_file = socket.socket(fileno=descriptors[0]), descriptors[1]
            # Garbage collection would copy all imported objects in each fork: 2.8 s of 15 s for 51 jobs.
            gc.freeze()
            if not (process := os.fork()):
                for process_file, (_, other_job) in jobs_by_process.items():
                    os.close(process_file)
                    other_job.close()
                job.close()
                return snakemake_file, json.loads(request)
            os.close(snakemake_file)
            jobs_by_process[os.pidfd_open(process)] = process, job
            with contextlib.suppress(OSError):  # nobody is there any more
                job.send(b"started\n")
        for process_file in jobs_by_process.keys() & ready:
            process, job = jobs_by_process.pop(process_file)
            os.close(process_file)
            _, status, usage = os.wait4(process, 0)
            code, seconds = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
            with job, contextlib.suppress(OSError):  # nobody is there any more
                job.send(f"{code} {seconds} {usage.ru_maxrss / 1024}\n".encode())
        if module:
            # The script that uses the module reports the error, even a lack of memory.
            with contextlib.suppress(ImportError, MemoryError, SystemError):
                __import__(module)


def _become(snakemake_file: int, script: str, folder: str, environment: Mapping[str, str]) -> None:
    """Turn this fork into `python script`; it ends with the script."""
    end_with_parent()
    with open(snakemake_file, "rb") as file:
        snakemake = pickle.load(file)
    with open(os.devnull) as null_device:  # noqa: PTH123 its descriptor is used
        os.dup2(null_device.fileno(), 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:], sys.path[0] = [script], str(Path(script).parent)
    code = None
    try:
        runpy.run_path(script, {"snakemake": snakemake}, run_name="__main__")
    except SystemExit as exit_:
        code = exit_.code
    except BaseException:
        traceback.print_exc()
        code = 1
    exit_now(code)


if __name__ == "__main__":
    # Ctrl-C reaches all processes of a terminal; the run itself ends its jobs (ttf.engine.process.stopping).
    for stop_signal in (signal.SIGINT, signal.SIGHUP):
        signal.signal(stop_signal, signal.SIG_IGN)
    from ttf.engine.process.entry import limit_libraries
    from ttf.engine.process.memory import keep_freed_memory
    from ttf.engine.process.stopping import end_with_parent, exit_now

    # Imports and jobs make little garbage; collecting at every 700th object takes 3% of the time of a sample.
    gc.set_threshold(100_000, 20, 20)
    limit_libraries(1)
    keep_freed_memory()  # a fork could no longer tell Polars
    snakemake_file, request = _serve(socket.socket(fileno=os.dup(0)), iter(sys.argv[1:]))
    _become(snakemake_file, *request)
