"""Stopping on request (Ctrl-C, SIGTERM, SIGHUP): one sentence, the exit status of a stop, and no process left behind.

Import it before all else: what it imports itself takes no time. A product that is half written when its job is ended is
known to Snakemake as unfinished, however it ends; so nothing is waited for but that jobs remove their temporary files.
"""

import atexit
import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

WORDS = "stopped; the same command goes on from here"
# Signal -> exit status.
REQUESTS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}
# Of a job: whose process it is to end with.
RUN = "TTF_RUN"
# Before a script of Snakemake's: Ctrl-C reaches all processes of a terminal, and the run ends its jobs itself. The
# script takes the place of the shell, which would tell of its end, or leave it to nobody.
PREFIX = f"trap '' INT HUP; export {RUN}={{}}; exec "
_GRACE_S = 3.0
# `make`, `timeout` and a terminal may each send the same request.
_SAME_REQUEST_S = 0.5
_asked: dict[str, Any] = {"status": None, "at": 0.0, "temporary": None, "watches": False}
# The process of `make`, as the Makefile tells it: it may be gone before this one could ask who its parent is.
_make = int(os.environ.pop("TTF_MAKE", 0))


def stop_on_request(remote: bool = False, temporary: Any = None) -> None:
    """End this process and all that it has started when asked to; call it in the main thread.

    A request that whoever started it shuts off (`nohup`) stays shut off. remote: jobs run elsewhere, and Snakemake is
    left to cancel them; then `leave_if_asked` ends the process. temporary: a folder that goes with this process.
    """
    _asked["temporary"] = temporary
    for request in REQUESTS:
        if not _shut_off(request):
            signal.signal(request, _cancel if remote else _stop)
    # Before anything is started: a second request would find the first one's import of it half done. `make verify` of
    # a folder has no environment, and starts nothing.
    with contextlib.suppress(ImportError):
        import psutil  # noqa: F401
    # Another program may have run the Makefile's line; where the system does not say, it is `make`.
    if "make" in (_text(f"/proc/{_make}/comm") or "make") and _make and not _asked["watches"]:
        _asked["watches"] = True
        _watch(_asked_of_make)


def _shut_off(request: int) -> bool:
    if _make:
        # The Makefile shuts all off for the moment until this process has its own answer.
        return bool(_mask(_make, "SigIgn") & _bit(request))
    return signal.getsignal(request) is signal.SIG_IGN


def no_more() -> None:
    """All is done and told: a request that comes now changes nothing."""
    for request in REQUESTS:
        signal.signal(request, signal.SIG_IGN)


def asked() -> bool:
    """Was this run asked to stop? A job that the same request ended is seen to have ended before the request is."""
    time.sleep(0.3)
    return _asked["status"] is not None


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


def leave_if_asked() -> None:
    if _asked["status"] is not None:
        _leave()


def _stop(request: int, frame: Any) -> None:
    if _asked["status"] is not None:
        if request == signal.SIGINT and time.monotonic() - _asked["at"] > _SAME_REQUEST_S:
            _kill(_started())
            _leave()
        return
    _asked.update(status=REQUESTS[signal.Signals(request)], at=time.monotonic())
    _end(processes := _started(), signal.SIGTERM)
    if not _ended(processes, _GRACE_S):
        _kill([*processes, *_started()])
    _leave()


def _cancel(request: int, frame: Any) -> None:
    from traceback import walk_stack

    if _asked["status"] is None and any(call.f_code.co_name == "schedule" for call, _ in walk_stack(frame)):
        _asked.update(status=REQUESTS[signal.Signals(request)], at=time.monotonic())
        raise KeyboardInterrupt
    _stop(request, frame)


def _leave() -> None:
    if _asked["temporary"]:
        import shutil

        shutil.rmtree(_asked["temporary"], ignore_errors=True)
    _let_make_hear()
    # Not by `print`: the request may have come in the middle of one.
    with contextlib.suppress(OSError):  # the terminal is gone
        os.write(2, f"{WORDS}\n".encode())
    os._exit(_asked["status"])


def _started() -> list[Any]:
    """The processes that this one has started, and those that they have."""
    try:
        import psutil

        return psutil.Process().children(recursive=True)
    except Exception:  # asked while psutil was imported: nothing was started yet
        return []


def _end(processes: list[Any], how: int) -> None:
    for process in processes:
        try:
            process.send_signal(how)
        except Exception:  # it has ended
            continue


def _kill(processes: list[Any]) -> None:
    _end(processes, signal.SIGKILL)
    _ended(processes, _GRACE_S)


def _ended(processes: list[Any], seconds: float) -> bool:
    """Have they ended, within so many seconds? One that nobody has seen end has, but is given a moment."""
    until = time.monotonic() + seconds
    while (left := {_state(process) for process in processes} - {"gone"}) and time.monotonic() < until:
        if left == {"zombie"}:
            until = min(until, time.monotonic() + 0.2)
        time.sleep(0.02)
    return left <= {"zombie"}


def _state(process: Any) -> str:
    try:
        return process.status() if process.is_running() else "gone"
    except Exception:  # it went in between
        return "gone"


def end_with_the_run() -> None:
    """Of a job: end when the run asks, temporary files removed, and when the run has ended without a word."""
    run = int(os.environ.get(RUN, 0))
    if not run or run == os.getpid():
        return
    signal.signal(signal.SIGTERM, _end_job)
    if hasattr(os, "pidfd_open"):
        _watch(lambda: _end_of(run))


def _end_of(process: int) -> int | None:
    """Wait until a process has ended."""
    try:
        select.select([os.pidfd_open(process)], [], [])
    except ProcessLookupError:
        pass
    except OSError:
        return None
    return signal.SIGTERM


def _end_job(request: int, frame: Any) -> None:
    """Not by an exception, which some library may catch, or tell of. Who started the job may ask as it ends itself."""
    signal.signal(request, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    atexit._run_exitfuncs()  # temporary folders
    os._exit(REQUESTS[signal.SIGTERM])


def _asked_of_make() -> int:
    """Wait until `make` is asked to stop, which it need not tell those it runs, or is killed."""
    while os.getppid() == _make:
        if asked_for := _heard_by_make():
            return asked_for[0]
        time.sleep(0.5)
    return signal.SIGTERM


def _heard_by_make() -> list[int]:
    """What `make` was asked: it catches that request no more, and waits for what it runs."""
    heard = _mask(_make, "SigCgt") | _mask(_make, "SigIgn")
    return [request for request in REQUESTS if heard and not heard & _bit(request)]


def _let_make_hear(within_s: float = 0.5) -> None:
    """`make` that hears of the request after the end of what it runs takes it for an error ("No child processes")."""
    until = time.monotonic() + within_s
    while os.getppid() == _make and not _heard_by_make() and time.monotonic() < until:
        time.sleep(0.02)


def _bit(request: int) -> int:
    return 1 << request - 1


def _mask(process: int, kind: str) -> int:
    """The signals that a process catches or ignores, a bit each; 0 where the system does not say."""
    lines = _text(f"/proc/{process}/status").splitlines()
    return next((int(line.split()[1], 16) for line in lines if line.startswith(f"{kind}:")), 0)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 pathlib takes its time
            return file.read()
    except OSError:
        return ""


def _watch(request: Callable[[], int | None]) -> None:
    """Ask this process to stop with the request that comes, if one does."""

    def wait() -> None:
        if number := request():
            os.kill(os.getpid(), number)
            time.sleep(4 * _GRACE_S)
            os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()
