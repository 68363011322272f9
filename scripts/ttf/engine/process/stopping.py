"""Stopping on request (Ctrl-C, SIGTERM, SIGHUP): one sentence, the exit status of a stop, and no process left behind.

Import it before all else: what it imports itself takes no time. A product that is half written when its job is ended is
known to Snakemake as unfinished, however it ends; so nothing is waited for but that jobs remove their temporary files.
"""

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import time
from typing import Any

WORDS = "stopped; the same command goes on from here"
# Signal -> exit status.
REQUESTS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}
# Seconds that processes are given to end: those of this machine, and those that cancel jobs on others.
_GRACE_S, _REMOTE_GRACE_S = 3.0, 60.0
# `make`, `timeout` and a terminal may each send the same request.
_SAME_REQUEST_S = 0.5
# Numbers of Linux's prctl: a signal when the parent ends; orphans below this process become its children.
_PARENT_ENDS, _ADOPT = 1, 36


def run_apart(remote: bool = False) -> None:
    """Return in a child process with a process group of its own; this one waits and ends with the child's status.

    A request to stop ends the whole group, and the program says so in one sentence. What whoever started it ignores
    (`nohup`) stays ignored. remote: the child is Snakemake with jobs elsewhere, and is left to cancel them. The child
    dies of SIGINT without a word until it says otherwise (`interrupts_are_errors`).
    """
    # Until both processes have their answer, a request waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, REQUESTS)
    _ask_kernel(_PARENT_ENDS, signal.SIGTERM)
    _ask_kernel(_ADOPT, 1)
    if child := os.fork():
        _Watch(child, remote).wait()
    os.setpgid(0, 0)
    _ask_kernel(_PARENT_ENDS, signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, REQUESTS)


def interrupts_are_errors() -> None:
    """From now on SIGINT is a KeyboardInterrupt, of which Snakemake ends its jobs and gives back its lock."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore_requests() -> None:
    """All is done and told: a request that comes now changes nothing."""
    for request in REQUESTS:
        signal.signal(request, signal.SIG_IGN)


def end_job_on_request() -> None:
    """Of a job: end at once when asked to, temporary files removed."""
    for request in (signal.SIGINT, signal.SIGTERM):
        signal.signal(request, _end_job)


def end_with_parent() -> None:
    """Ask this process to end as soon as the one that forked it has."""
    _ask_kernel(_PARENT_ENDS, signal.SIGTERM)


def end_at_once(code: Any) -> None:
    """End this process with the code of a SystemExit, what is to be done at its end done.

    Not by the end of Python itself, which takes every object apart: of a start of the study with nothing to do a sixth.
    """
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads any more
            stream.flush()
    os._exit(code or 0)


class _Watch:
    """Waits for a child, the first of its process group, and passes requests on."""

    def __init__(self, child: int, remote: bool) -> None:
        self._child, self._remote = child, remote
        self._status: int | None = None
        self._asked_s: float | None = None
        with contextlib.suppress(OSError):  # the child was faster
            os.setpgid(child, child)
        for request in REQUESTS:
            if signal.getsignal(request) is not signal.SIG_IGN:
                signal.signal(request, self._stop)
        signal.signal(signal.SIGTSTP, self._pause)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, REQUESTS)

    def wait(self) -> None:
        """End this process as the child ends."""
        while self._status is None:
            self._reap(0)
        ignore_requests()
        self._send(signal.SIGKILL)  # what it left behind
        os._exit(self._status if self._status >= 0 else 128 - self._status)

    def _reap(self, options: int) -> bool:
        """Note which process has ended; whether there may be more to wait for."""
        try:
            process, status = os.waitpid(-1, options)
        except ChildProcessError:
            return False
        if process == self._child:
            self._status = os.waitstatus_to_exitcode(status)
        return True

    def _stop(self, request: int, frame: Any) -> None:
        if self._asked_s is not None:
            if request == signal.SIGINT and time.monotonic() - self._asked_s > _SAME_REQUEST_S:
                self._leave(request)
            return
        self._asked_s = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGINT)
        if not self._remote:
            # A moment later, so that Snakemake takes no job for failed. It lets SIGTERM pass.
            self._wait_for_all(0.1)
            self._send(signal.SIGTERM)
        self._wait_for_all(_REMOTE_GRACE_S if self._remote else _GRACE_S)
        if self._status == 0:  # it was done
            os._exit(0)
        self._leave(request)

    def _wait_for_all(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._reap(os.WNOHANG) and time.monotonic() < until:
            time.sleep(0.01)

    def _leave(self, request: int) -> None:
        self._send(signal.SIGKILL)
        self._wait_for_all(_GRACE_S)
        # Not by `print`: the request may have come in the middle of one.
        with contextlib.suppress(OSError):  # the terminal is gone
            os.write(2, f"{WORDS}\n".encode())
        os._exit(REQUESTS[signal.Signals(request)])

    def _pause(self, request: int, frame: Any) -> None:
        """Ctrl-Z, until the shell lets both go on."""
        self._send(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._send(signal.SIGCONT)

    def _send(self, request: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child, request)


def _end_job(request: int, frame: Any) -> None:
    """Not by an exception, which some library may catch, or tell of."""
    signal.signal(request, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    atexit._run_exitfuncs()  # temporary folders
    os._exit(REQUESTS[signal.Signals(request)])


def _ask_kernel(what: int, value: int) -> None:
    """Where the kernel is Linux."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(what, value)
