"""Stop on request (Ctrl-C, SIGTERM, SIGHUP) with one sentence, the right exit status, and no process left behind.

Import it first; its own imports take no time. Snakemake knows half-written products as unfinished, however their job
ends, so a stop waits only until jobs have removed their temporary files.
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
# Seconds for processes to end: local ones, and those that cancel jobs on other machines.
_GRACE_S, _REMOTE_GRACE_S = 3.0, 60.0
# Signals within this time are one request: `make`, `timeout` and a terminal may each send it.
_REPEAT_S = 0.5
# Options of Linux's prctl: a signal when the parent ends; orphaned descendants become children.
_PARENT_DEATH_SIGNAL, _ADOPT_ORPHANS = 1, 36


def run_in_child(remote: bool = False) -> None:
    """Return in a child process with its own process group; this process waits and exits with the child's status.

    A request to stop ends the whole group and prints one sentence. Signals that the caller ignores (`nohup`) stay
    ignored. remote: the child is Snakemake with jobs on other machines, and gets time to cancel them. Until it calls
    `raise_on_interrupt`, the child ends silently on SIGINT.
    """
    # Requests wait until both processes have their handlers.
    signal.pthread_sigmask(signal.SIG_BLOCK, REQUESTS)
    _set_process_option(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    _set_process_option(_ADOPT_ORPHANS, 1)
    if child := os.fork():
        _Watcher(child, remote).wait()
    os.setpgid(0, 0)
    _set_process_option(_PARENT_DEATH_SIGNAL, signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, REQUESTS)


def raise_on_interrupt() -> None:
    """Make SIGINT raise KeyboardInterrupt, on which Snakemake ends its jobs and releases its lock."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore_requests() -> None:
    """Ignore requests to stop from now on: all work is done and reported."""
    for signal_number in REQUESTS:
        signal.signal(signal_number, signal.SIG_IGN)


def end_job_on_request() -> None:
    """Make this job end at once on request, after removing its temporary files."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, _end_job)


def end_with_parent() -> None:
    """Make this process end when its parent ends."""
    _set_process_option(_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def exit_now(code: Any) -> None:
    """Exit with the code of a SystemExit after running exit handlers.

    Skips the interpreter's shutdown, which takes a sixth of a study's start with nothing to do.
    """
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader is gone
            stream.flush()
    os._exit(code or 0)


class _Watcher:
    """Waits for a child, the leader of its process group, and forwards requests."""

    def __init__(self, child: int, remote: bool) -> None:
        self._child, self._remote = child, remote
        self._status: int | None = None
        self._first_request_s: float | None = None
        with contextlib.suppress(OSError):  # the child was faster
            os.setpgid(child, child)
        for signal_number in REQUESTS:
            if signal.getsignal(signal_number) is not signal.SIG_IGN:
                signal.signal(signal_number, self._handle_signal)
        signal.signal(signal.SIGTSTP, self._pause)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, REQUESTS)

    def wait(self) -> None:
        """Wait for the child and exit with its status."""
        while self._status is None:
            self._reap(0)
        ignore_requests()
        self._send_to_group(signal.SIGKILL)  # remaining processes of the group
        os._exit(self._status if self._status >= 0 else 128 - self._status)

    def _reap(self, options: int) -> bool:
        """Wait for one process; return whether more may follow."""
        try:
            process, status = os.waitpid(-1, options)
        except ChildProcessError:
            return False
        if process == self._child:
            self._status = os.waitstatus_to_exitcode(status)
        return True

    def _handle_signal(self, signal_number: int, frame: Any) -> None:
        """End the child and its group and exit; on a repeated Ctrl-C, kill them at once."""
        if self._first_request_s is not None:
            if signal_number == signal.SIGINT and time.monotonic() - self._first_request_s > _REPEAT_S:
                self._kill_all_and_exit(signal_number)
            return
        self._first_request_s = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGINT)
        if not self._remote:
            # Delayed, so that Snakemake does not see failed jobs. It ignores SIGTERM.
            self._wait_for_all_at_most(0.1)
            self._send_to_group(signal.SIGTERM)
        self._wait_for_all_at_most(_REMOTE_GRACE_S if self._remote else _GRACE_S)
        if self._status == 0:  # the child had finished
            os._exit(0)
        self._kill_all_and_exit(signal_number)

    def _wait_for_all_at_most(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._reap(os.WNOHANG) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _kill_all_and_exit(self, signal_number: int) -> None:
        self._send_to_group(signal.SIGKILL)
        self._wait_for_all_at_most(_GRACE_S)
        # Not `print`: the signal may have interrupted one.
        with contextlib.suppress(OSError):  # the terminal is gone
            os.write(2, f"{WORDS}\n".encode())
        os._exit(REQUESTS[signal.Signals(signal_number)])

    def _pause(self, signal_number: int, frame: Any) -> None:
        """Pause on Ctrl-Z until the shell resumes both processes."""
        self._send_to_group(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._send_to_group(signal.SIGCONT)

    def _send_to_group(self, signal_number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child, signal_number)


def _end_job(signal_number: int, frame: Any) -> None:
    """End without an exception, which a library could catch or print."""
    signal.signal(signal_number, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    atexit._run_exitfuncs()  # temporary folders
    os._exit(REQUESTS[signal.Signals(signal_number)])


def _set_process_option(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(option, value)
