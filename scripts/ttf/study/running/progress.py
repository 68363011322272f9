"""The terminal output of a run: a line per finished job, the message of a failed one, and the bottom line.

Snakemake's own output stays in .snakemake/log, and appears with --verbose.
"""

import itertools
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
from ttf.display.phrases import strip_markup
from ttf.engine.process.machine import OF_LIBRARIES, explain_error_text, explain_full_disk

_INDENT = 17
_LONGEST_ERROR = 12  # lines
MOST_TRACES = 6
_KILLED = "It ended without a message. It may have run out of memory; run fewer jobs at a time: ttf report --cores 1"
_GENERIC_FAILURES = ("Exiting because a job execution failed", "At least one job did not complete")
_OUTPUT_FOLDERS = ("results", "logs", "benchmarks", ".snakemake", tempfile.gettempdir())
STOPPED = "The study stopped. A rerun continues from here; the log of every rule is in logs/."


def find_report_page() -> str | None:
    """Return the page of the report if the run makes it; the workflow replaces this function."""
    return None


def format_end_of_run(page: str | None, briefs: Callable[[], Mapping[str, Brief]]) -> str:
    """Return the message at the end of a run: the findings, and where the report is."""
    return "\n".join(["", *summarise_briefs(briefs()), f"The report: {page}"]) if page else "Done."


class Progress(LogHandlerBase):
    """Handles Snakemake's log events and writes to `stream`."""

    writes_to_stream, writes_to_file, needs_rulegraph = True, False, False
    has_filter = has_formatter = True

    def __init__(self, common_settings: Any, settings: Any = None, stream: TextIO = sys.stderr) -> None:
        super().__init__(common_settings, settings)
        self._stream = stream
        self._jobs: dict[int, dict[str, Any]] = {}
        self._done, self._total, self._start = 0, 0, time.monotonic()
        self._failed = self._refused = self._stopped = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._stopped:
                return
            event = getattr(getattr(record, "event", None), "value", "")
            if record.levelno >= logging.WARNING and event not in ("job_error", "group_error"):
                self._report_warning(record)
            else:
                self._report_event(event, record)
        except Exception:
            self.handleError(record)

    def _report_warning(self, record: logging.LogRecord) -> None:
        """Write Snakemake's own warnings and errors, except those about a failed job, which has its own message."""
        text = str(record.msg)
        if refusal := explain_error_text(text, _OUTPUT_FOLDERS):
            # Snakemake's own log finds no room on the disk; report it unless a job already has.
            if not self._failed:
                self._write(f"\nerror\n{refusal}\n")
            self._failed = self._refused = True
        elif "CalledProcessError" in text and getattr(record, "exception", "") == "RuleException":
            return
        elif not (self._failed and any(words in text for words in _GENERIC_FAILURES)):
            self._write(text)

    def _report_event(self, event: str, record: logging.LogRecord) -> None:
        fields = vars(record)  # Snakemake adds fields by kind of event
        if event == "run_info":
            # Targets without products, such as `all`, do not count as jobs.
            targets = {"default", "all", "ingested", "analysed", "total"}
            self._total = sum(count for rule, count in fields["stats"].items() if rule not in targets)
            self._write(f"{self._total} job{'' if self._total == 1 else 's'} to run; the log of each is in logs/.")
        elif event == "job_info":
            self._jobs[fields["jobid"]] = {
                "stage": describe_job(fields["rule_name"], fields["wildcards"]),
                "logs": [Path(path) for path in fields["log"]],
                "start": time.monotonic(),
                "started": time.time(),
            }
        elif event == "job_finished" and self._jobs.get(fields["job_id"], {}).get("logs"):
            self._done += 1
            self._report_finished(self._jobs[fields["job_id"]])
        elif event == "job_error" and not getattr(record, "indent", False):
            # Jobs of a group are indented; the group reports them.
            self._failed = True
            self._report_failure([fields["jobid"]], fields["rule_name"], read_remote_account(fields))
        elif event == "group_error":
            self._failed = True
            job_output = read_remote_account(fields)
            rule_by_id = {job["jobid"]: job["rule_name"] for job in fields["job_error_info"]}
            failed_ids = [
                jobid
                for jobid, name in rule_by_id.items()
                if re.search(rf"^Error in rule {name}\b", job_output, re.MULTILINE)
            ]
            self._report_failure(failed_ids or rule_by_id, fields["groupid"], job_output)
        elif str(record.msg).startswith("Trying to restart job"):
            self._write("It runs again, with more memory and time.\n")
        elif "Nothing to be done" in str(record.msg):
            page = find_report_page()
            self._write("Nothing to do: every product is up to date." + (f"\nThe report: {page}" if page else ""))
        elif str(record.msg).startswith("Terminating processes on user request"):
            self._stopped = True
        elif getattr(record, "is_study_message", False):
            text = record.msg if record.msg == STOPPED else f"{record.msg} ({time.monotonic() - self._start:.0f} s)"
            self._write(text)

    def _report_finished(self, job: dict[str, Any]) -> None:
        message = next((text.strip() for log in job["logs"] if (text := _read_log(log, job["started"]))), job["stage"])
        count = f"{self._done:>{len(str(self._total))}}/{self._total}"
        self._write(format_line(count, time.monotonic() - job["start"], message))

    def _report_failure(self, jobids: Iterable[int], name: str, job_output: str) -> None:
        """Write why these jobs failed, from their logs; for jobs without message from the scheduler's output."""
        jobs_without_message = []
        # The log of a job that Slurm killed shows progress, not the reason.
        is_killed = re.search(r"^slurmstepd\S* error: ", job_output, re.MULTILINE)
        for job in (self._jobs.get(jobid, {"stage": name, "logs": [], "started": 0}) for jobid in jobids):
            message = "" if is_killed else read_failure(job["logs"], job["started"])
            if message:
                self._write(f"\nerror in {job['stage']}\n{message}\n")
            else:
                jobs_without_message.append(job["stage"])
        if jobs_without_message and not self._refused:
            reason = extract_scheduler_lines(job_output) or explain_full_disk(_OUTPUT_FOLDERS) or _KILLED
            self._write(f"\nerror in {', '.join(jobs_without_message)}\n{reason}\n")

    def _write(self, text: str) -> None:
        escaped = re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda match: f"\\x{ord(match[0]):02x}", text)
        print(escaped, file=self._stream, flush=True)


def describe_job(rule: str, wildcards: Iterable[tuple[str, str]] | dict[str, str]) -> str:
    subject = " ".join(filter(None, dict(wildcards).values()))
    return f"{subject}: {rule}" if subject else rule


def format_line(count: str, seconds: float, message: str) -> str:
    """Return one line of progress; text wider than the terminal is wrapped and indented."""
    width = max(shutil.get_terminal_size((80, 24)).columns, 60)
    start = f"{count:>7} {seconds:6.1f} s".ljust(_INDENT)
    return textwrap.fill(message, width, initial_indent=start, subsequent_indent=" " * _INDENT, break_long_words=False)


def read_failure(logs: list[Path], started: float) -> str:
    """Return why a job failed: the message in its log, or the error of a traceback with the log's path; else empty."""
    for log in logs:
        text = _read_log(log, started).strip()
        if text.startswith(OF_LIBRARIES):
            if text == OF_LIBRARIES:
                continue
            return f"{explain_error_text(text) or _KILLED}\nWhat libraries wrote is in {log}"
        if text and not text.startswith("Traceback (most recent call last)"):
            return text
        if text:
            # Lines of calls are indented; the error follows the last of them.
            *_, error = re.split(r"^  .*\n", text, flags=re.MULTILINE)
            return "\n".join([*error.splitlines()[:_LONGEST_ERROR], f"The traceback is in {log}"])
    return ""


def read_remote_account(record: dict[str, Any]) -> str:
    """Return the scheduler's message about a remote job, and its log; empty for a local job."""
    message = str(record.get("rule_msg") or "").partition("For further error details")[0].strip()
    logs = [file for file in record.get("aux_logs") or record.get("log") or [] if file and "slurm_logs" in str(file)]
    log_texts = [
        f"{_read_log(Path(file), 0)}\nThe whole log of the job is {os.path.relpath(file)}" for file in logs[-1:]
    ]
    return "\n".join([message, *log_texts]).strip()


def extract_scheduler_lines(job_output: str) -> str:
    """Return the scheduler's lines that say why a job ended, each once, and where the log is."""
    lines = re.findall(
        r"^(?:SLURM-job .*|(?:slurmstepd|srun)\S* error: .*|The whole log .*)$", job_output, re.MULTILINE
    )
    log_lines = [line for line in dict.fromkeys(lines) if line.startswith("The whole log")]
    other_lines = [line for line in dict.fromkeys(lines) if line not in log_lines]
    return "\n".join([*other_lines[:6], *log_lines])


def _read_log(log: Path, started: float) -> str:
    """Return the text of a log; empty if it is missing or was written before `started` (s since 1970)."""
    try:
        # Some file systems store whole seconds.
        return log.read_text(encoding="utf-8", errors="replace") if log.stat().st_mtime >= started - 2 else ""
    except OSError:
        return ""


def summarise_briefs(briefs: Mapping[str, Brief], width: int | None = None) -> list[str]:
    """Return the end of a run: bottom line, withheld figures and next action of one trace, or a line per trace."""
    width = max(width or shutil.get_terminal_size((80, 24)).columns, 60)

    def wrap(text: str, max_lines: int) -> list[str]:
        return textwrap.wrap(strip_markup(text), width, max_lines=max_lines, placeholder=" …", subsequent_indent="  ")

    if len(briefs) != 1:
        summaries = [wrap(f"{name}: {brief.bottom_line[0]}", 1) for name, brief in list(briefs.items())[:MOST_TRACES]]
        hidden = len(briefs) - len(summaries)
        return [*itertools.chain(*summaries), *([f"and {hidden} more"] if hidden else [])]
    (brief,) = briefs.values()
    withheld = [tile for tile in brief.tiles if tile.state == WITHHELD]
    lines = wrap(" ".join(brief.bottom_line), 4)
    if withheld:
        lines += wrap(f"Withheld: {'; '.join(tile.title for tile in withheld)}. {withheld[0].means}", 2)
    if brief.actions:
        first = brief.actions[0]
        lines += wrap(f"Next: {first.summary}.", 2)
        # In one piece, to be copied.
        lines += [f"  {first.command}"] if first.command else []
    return lines
