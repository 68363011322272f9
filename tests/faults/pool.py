"""Run judges in separate processes: kill and report those that hang, and report those that die."""

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from faults.verdict import LONGEST_S, Verdict

Judge = Callable[[Any], Verdict]
_CONTEXT = multiprocessing.get_context("spawn")
# Above the allowed limit, to measure the peak of a case, and low enough to protect the machine.
_MOST_BYTES = 6_000_000_000


def _serve(judge: Judge, pipe: Connection) -> None:
    while True:
        case = pipe.recv()
        if case is None:
            return
        Path("/proc/self/clear_refs").write_text("5")  # reset the peak
        start_s = time.process_time()  # processor time, so a busy machine causes no fault
        try:
            verdict = judge(case)
        except BaseException:
            verdict = Verdict(str(case[0]), str(case), "fault", f"traceback: {traceback.format_exc()[-3000:]}")
        pipe.send((verdict, time.process_time() - start_s, _peak_bytes()))


def _peak_bytes(process: int | str = "self") -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


class _Process:
    def __init__(self, judge: Judge):
        self.pipe, child_pipe = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_serve, args=(judge, child_pipe), daemon=True)
        self.process.start()
        child_pipe.close()
        self.case: Any = None

    def give(self, case: Any) -> None:
        self.case, self.since = case, time.monotonic()
        self.pipe.send(case)

    def poll_verdict(self) -> Verdict | None:
        """Return the verdict if it is ready; a fault if the process died or exceeds the limits."""
        name = str(self.case)
        if self.pipe.poll():
            try:
                verdict, seconds, peak = self.pipe.recv()
            except EOFError:
                self.process.join()
                return Verdict(self.case[0], name, "fault", f"died: exit status {self.process.exitcode}")
            return replace(verdict, seconds=seconds, peak_bytes=peak)
        if time.monotonic() - self.since > 10 * LONGEST_S:
            self.process.kill()
            return Verdict(self.case[0], name, "fault", f"hang: over {10 * LONGEST_S} s")
        if _peak_bytes(self.process.pid) > _MOST_BYTES:
            self.process.kill()
            return Verdict(self.case[0], name, "fault", f"memory: over {_MOST_BYTES:,} bytes")
        return None


def judge_all(judge: Judge, cases: Iterable[Any], processes: int = 2) -> Iterator[Verdict]:
    """Yield the verdict on each case, a tuple that begins with its kind, in order of completion."""
    remaining, working, idle = iter(cases), [], []
    try:
        while True:
            while len(working) < processes and (case := next(remaining, None)) is not None:
                process = idle.pop() if idle else _Process(judge)
                process.give(case)
                working.append(process)
            if not working:
                return
            wait([process.pipe for process in working], timeout=1)
            for process in list(working):
                if (verdict := process.poll_verdict()) is not None:
                    working.remove(process)
                    if verdict.words.startswith(("died:", "hang:", "memory:")):
                        process.process.kill()
                    else:
                        idle.append(process)
                    yield verdict
    finally:
        for process in [*working, *idle]:
            process.process.kill()
