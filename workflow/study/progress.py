"""What a person at the terminal sees of a run: a line per finished job, the message of a failed one, the bottom line.

Snakemake's own account of the run stays in .snakemake/log, and comes to the terminal with --verbose.
"""

import logging
import os
import re
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from snakemake_interface_logger_plugins.base import LogHandlerBase
from ttf.display.brief_model import WITHHELD, Brief
from ttf.display.phrases import plain
from ttf.engine.process.machine import OF_LIBRARIES, full, refused_in

_INDENT = 17
_LONGEST_ERROR = 12  # lines
MOST_TRACES = 6
_KILLED = "It ended without a word. Was it killed, for want of memory? Fewer jobs at a time: make report CORES=1"
_WRITTEN = ("results", "logs", "benchmarks", ".snakemake", tempfile.gettempdir())
STOPPED = "The study stopped. A rerun continues from here; the log of every rule is in logs/."


def at_rest() -> str | None:
    """Where nothing is to do: the page of the report, if the run is for it. The workflow puts its own in this place."""
    return None


def end_of_run(page: str | None, briefs: Callable[[], Mapping[str, Brief]]) -> str:
    """What is said when all is done: what was found, and where the report is."""
    return "\n".join(["", *said_of(briefs()), f"The report: {page}"]) if page else "Done."


class Progress(LogHandlerBase):
    """Listens to Snakemake's events. stream: where it writes to."""

    writes_to_stream, writes_to_file, needs_rulegraph = True, False, False
    has_filter = has_formatter = True

    def __init__(self, common_settings: Any, settings: Any = None, stream: TextIO = sys.stderr):
        super().__init__(common_settings, settings)
        self._stream = stream
        self._jobs: dict[int, dict[str, Any]] = {}
        self._done, self._total, self._start = 0, 0, time.monotonic()
        self._failed = self._refused = self._stopped = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._stopped:
                return
            if record.levelno >= logging.WARNING and self._event(record) not in ("job_error", "group_error"):
                self._warn(record)
            else:
                self._tell(record)
        except Exception:
            self.handleError(record)

    def _warn(self, record: logging.LogRecord) -> None:
        """What Snakemake says itself, but not that a job failed, which has said why."""
        text = str(record.msg)
        if words := refused_in(text, _WRITTEN):
            # Its own account finds no room, where a job has told of it or none has.
            if not self._failed:
                self._say(f"\nerror\n{words}\n")
            self._failed = self._refused = True
        elif not ("CalledProcessError" in text and getattr(record, "exception", "") == "RuleException") and not (
            self._failed and _says_only_that_a_job_failed(text)
        ):
            self._say(text)

    def _tell(self, record: logging.LogRecord) -> None:
        event = self._event(record)
        if event == "run_info":
            # A target without products, such as `all`, is no job to anybody.
            targets = {"default", "all", "ingested", "analysed", "total"}
            self._total = sum(count for rule, count in record.stats.items() if rule not in targets)
            self._say(f"{self._total} job{'' if self._total == 1 else 's'} to run; the log of each is in logs/.")
        elif event == "job_info":
            self._jobs[record.jobid] = {
                "stage": stage(record.rule_name, record.wildcards),
                "logs": [Path(path) for path in record.log],
                "start": time.monotonic(),
                "started": time.time(),
            }
        elif event == "job_finished" and self._jobs.get(record.job_id, {}).get("logs"):
            self._done += 1
            self._finished(self._jobs[record.job_id])
        elif event == "job_error" and not getattr(record, "indent", False):
            # The jobs of a group are indented, and reported with it.
            self._failed = True
            self._stumbled([record.jobid], record.rule_name, elsewhere(record.__dict__))
        elif event == "group_error":
            self._failed = True
            account = elsewhere(record.__dict__)
            names = {job["jobid"]: job["rule_name"] for job in record.job_error_info}
            failed = [
                jobid for jobid, name in names.items() if re.search(rf"^Error in rule {name}\b", account, re.MULTILINE)
            ]
            self._stumbled(failed or names, record.groupid, account)
        elif str(record.msg).startswith("Trying to restart job"):
            self._say("It is tried again, with more memory and time.\n")
        elif "Nothing to be done" in str(record.msg):
            page = at_rest()
            self._say("Nothing to do: every product is up to date." + (f"\nThe report: {page}" if page else ""))
        elif str(record.msg).startswith("Terminating processes on user request"):
            self._stopped = True
        elif getattr(record, "of_study", False):
            ended = record.msg if record.msg == STOPPED else f"{record.msg} ({time.monotonic() - self._start:.0f} s)"
            self._say(ended)

    def _finished(self, job: dict[str, Any]) -> None:
        words = next((text.strip() for log in job["logs"] if (text := _read(log, job["started"]))), job["stage"])
        count = f"{self._done:>{len(str(self._total))}}/{self._total}"
        self._say(line(count, time.monotonic() - job["start"], words))

    def _stumbled(self, jobids: Iterable[int], name: str, account: str) -> None:
        """Why these jobs failed, each by its log; those without a message together, by the account of who ran them."""
        silent = []
        # A job that Slurm killed may have written by then what it had done, which is no reason.
        killed = re.search(r"^slurmstepd\S* error: ", account, re.MULTILINE)
        for job in (self._jobs.get(jobid, {"stage": name, "logs": [], "started": 0}) for jobid in jobids):
            words = "" if killed else failure(job["logs"], job["started"])
            if words:
                self._say(f"\nerror in {job['stage']}\n{words}\n")
            else:
                silent.append(job["stage"])
        if silent and not self._refused:
            self._say(f"\nerror in {', '.join(silent)}\n{scheduler_words(account) or full(_WRITTEN) or _KILLED}\n")

    def _say(self, text: str) -> None:
        print(_without_control(text), file=self._stream, flush=True)

    @staticmethod
    def _event(record: logging.LogRecord) -> str:
        return getattr(getattr(record, "event", None), "value", "")


def _without_control(text: str) -> str:
    """The text with control characters written out: a message may quote a row, and a row may hold anything."""
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


def stage(rule: str, wildcards: Iterable[tuple[str, str]] | dict[str, str]) -> str:
    """Which job: its rule, and before it the trace and the part or file that it is about."""
    about = " ".join(dict(wildcards).values())
    return f"{about}: {rule}" if about else rule


def line(count: str, seconds: float, words: str, width: int | None = None) -> str:
    """One line of progress; where it is longer than the terminal, the rest is set in."""
    width = max(width or shutil.get_terminal_size((80, 24)).columns, 60)
    start = f"{count:>7} {seconds:6.1f} s".ljust(_INDENT)
    return textwrap.fill(words, width, initial_indent=start, subsequent_indent=" " * _INDENT, break_long_words=False)


def failure(logs: list[Path], started: float) -> str:
    """Why a job failed: the message in its log; of a traceback the error alone, with the log's path; "" if none."""
    for log in logs:
        text = _read(log, started).strip()
        if text.startswith(OF_LIBRARIES):
            if text == OF_LIBRARIES:
                continue
            return f"{refused_in(text) or _KILLED}\nWhat libraries wrote is in {log}"
        if text and not text.startswith("Traceback (most recent call last)"):
            return text
        if text:
            # The lines of calls are set in; what follows the last of them is the error itself.
            *_, error = re.split(r"^  .*\n", text, flags=re.MULTILINE)
            return "\n".join([*error.splitlines()[:_LONGEST_ERROR], f"The traceback is in {log}"])
    return ""


def elsewhere(record: dict[str, Any]) -> str:
    """The account of a job that ran elsewhere: the words of who ran it, and the log kept there; "" of others."""
    words = str(record.get("rule_msg") or "").partition("For further error details")[0].strip()
    logs = [path for path in record.get("aux_logs") or record.get("log") or [] if path and "slurm_logs" in str(path)]
    kept = [f"{_read(Path(path), 0)}\nThe whole log of the job is {os.path.relpath(path)}" for path in logs[-1:]]
    return "\n".join([words, *kept]).strip()


def scheduler_words(account: str, most: int = 6) -> str:
    """Why a scheduler says that a job ended: its own lines of the account, each once, and where the log is."""
    lines = re.findall(r"^(?:SLURM-job .*|(?:slurmstepd|srun)\S* error: .*|The whole log .*)$", account, re.MULTILINE)
    of_log = [line for line in dict.fromkeys(lines) if line.startswith("The whole log")]
    said = [line for line in dict.fromkeys(lines) if line not in of_log]
    return "\n".join([*said[:most], *of_log])


def _read(log: Path, started: float) -> str:
    """The text of a log that was written since; of a former run's, nothing."""
    try:
        # Some file systems keep whole seconds.
        return log.read_text(encoding="utf-8", errors="replace") if log.stat().st_mtime >= started - 2 else ""
    except OSError:
        return ""


def _says_only_that_a_job_failed(text: str) -> bool:
    return "Exiting because a job execution failed" in text or "At least one job did not complete" in text


def said_of(briefs: Mapping[str, Brief], width: int | None = None) -> list[str]:
    """The end of a run in some lines: of one trace its bottom line, what is withheld and what to do; of several a line

    each.
    """
    width = max(width or shutil.get_terminal_size((80, 24)).columns, 60)

    def filled(text: str, most: int) -> list[str]:
        return textwrap.wrap(plain(text), width, max_lines=most, placeholder=" …", subsequent_indent="  ")

    if len(briefs) != 1:
        lines = [filled(f"{name}: {brief.bottom_line[0]}", 1) for name, brief in list(briefs.items())[:MOST_TRACES]]
        more = len(briefs) - len(lines)
        return [*(line for found in lines for line in found), *([f"and {more} more"] if more else [])]
    (brief,) = briefs.values()
    withheld = [tile for tile in brief.tiles if tile.state == WITHHELD]
    lines = filled(" ".join(brief.bottom_line), 4)
    if withheld:
        lines += filled(f"Withheld: {'; '.join(tile.title for tile in withheld)}. {withheld[0].means}", 2)
    if brief.actions:
        first = brief.actions[0]
        lines += filled(f"Next: {first.title} ({first.effect} {first.effect_note}).", 2)
    return lines
