"""What a user sees of a run: lines of finished jobs, messages of failed ones, the findings at the end."""

import io
import logging
import os
import time

import pytest
from made_numbers import ABOUT, numbers, proxy
from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.logging import LogEvent
from ttf.page.brief.brief import make_brief
from ttf.study.running import progress
from ttf.study.running.progress import (
    STOPPED,
    Progress,
    format_end_of_run,
    read_failure,
    summarise_briefs,
)


def record(message=None, level=logging.INFO, **extra):
    log_record = logging.LogRecord("snakemake.logging", level, "", 0, message, (), None)
    log_record.__dict__ |= extra
    return log_record


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of one job, `fit` of the trace `mine`, as Snakemake reports it."""

    class Run:
        log = tmp_path / "fit.log"
        stream = io.StringIO()
        page = "results/report/index.html"

        def __init__(self):
            self.progress = Progress(None, stream=self.stream)

        def tell(self, event=None, message=None, level=logging.INFO, **extra):
            self.progress.handle(record(message, level, event=event, **extra))

        def start(self):
            self.tell(LogEvent.RUN_INFO, stats={"fit": 1, "other": 11, "all": 1, "total": 13})
            self.tell(LogEvent.JOB_INFO, jobid=4, rule_name="fit", wildcards={"trace": "mine"}, log=[str(self.log)])

        @property
        def text(self):
            return self.stream.getvalue()

    Run.stream = io.StringIO()
    fake_run = Run()
    monkeypatch.setattr(progress, "find_report_page", lambda: fake_run.page)
    return fake_run


def test_a_finished_job_is_one_line_from_its_log(run):
    run.start()
    run.log.write_text("mine: fit: 8,152 pods\n")
    run.tell(LogEvent.JOB_FINISHED, job_id=4)
    run.tell(LogEvent.PROGRESS, done=1, total=13)
    assert run.text == "12 jobs to run; the log of each is in logs/.\n   1/12    0.0 s mine: fit: 8,152 pods\n"


def test_a_job_without_a_log_of_this_run_is_named(run):
    run.log.write_text("mine: fit: of the run before\n")
    os.utime(run.log, (time.time() - 60,) * 2)
    run.start()
    run.tell(LogEvent.JOB_FINISHED, job_id=4)
    assert run.text.endswith("s mine: fit\n")


def test_a_failed_job_is_its_message_and_nothing_of_snakemake(run):
    run.start()
    run.log.write_text("data/x.csv: line 3: \x1b[31mbroken\x07.\n  Mend it.\n")
    run.tell(LogEvent.JOB_ERROR, jobid=4, rule_name="fit")
    assert run.text.endswith("\nerror in mine: fit\ndata/x.csv: line 3: \\x1b[31mbroken\\x07.\n  Mend it.\n\n")
    before = run.text
    run.tell(LogEvent.ERROR, "CalledProcessError in file ...", logging.ERROR, exception="RuleException")
    run.tell(None, "Exiting because a job execution failed. Look above", logging.ERROR)
    run.tell(None, "WorkflowError:\nAt least one job did not complete successfully.", logging.ERROR)
    run.tell(None, "Building DAG of jobs...")
    assert run.text == before


def test_warnings_of_snakemake_are_shown(run):
    run.tell(LogEvent.ERROR, "MissingInputException in rule fit", logging.ERROR, exception="RuleException")
    run.tell(None, "a warning", logging.WARNING)
    run.tell(None, "WorkflowError:\nAt least one job did not complete successfully.", logging.ERROR)
    assert run.text.splitlines() == [
        "MissingInputException in rule fit",
        "a warning",
        "WorkflowError:",
        "At least one job did not complete successfully.",
    ]


@pytest.mark.parametrize("page", ["results/report/index.html", None])
def test_nothing_to_do(run, page):
    run.page = page
    run.tell(message=NOTHING_TO_BE_DONE_MSG)
    line_of_run = "Nothing to do: every product is up to date.\n"
    assert run.text == line_of_run + (f"The report: {page}\n" if page else "")


def test_a_traceback_is_left_in_the_log(tmp_path):
    log = tmp_path / "count.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n    ~^^\nValueError: one\ntwo\n'
    )
    assert read_failure([log], 0) == f"ValueError: one\ntwo\nThe traceback is in {log}"
    assert read_failure([tmp_path / "none.log"], 0) == ""
    assert read_failure([log], time.time() + 60) == "", "the log of a former run"


def test_a_job_without_a_message_was_killed(run):
    run.start()
    run.tell(LogEvent.JOB_ERROR, jobid=4, rule_name="fit")
    assert "error in mine: fit\nIt ended without a message. It may have run" in run.text


def test_a_job_that_the_stop_of_the_run_ended_is_no_error(run):
    run.start()
    before = run.text
    run.tell(message="Terminating processes on user request, this might take some time.")
    run.tell(LogEvent.JOB_ERROR, jobid=4, rule_name="fit")
    run.tell(message=STOPPED, is_study_message=True)
    assert run.text == before


def test_a_full_disk_for_snakemake_metadata_is_reported_once(run):
    run.start()
    text = "Error recording metadata ([Errno 28] No space left on device). Please ensure write permissions"
    run.tell(None, text, logging.ERROR)
    run.tell(None, f"OSError: {text}", logging.ERROR)
    run.tell(LogEvent.JOB_ERROR, jobid=4, rule_name="fit")
    assert run.text.count("the disk is full") == 1
    assert "It ended without a message" not in run.text and "recording" not in run.text


SLURM_LOG = """Building DAG of jobs...
slurmstepd-n1: error: StepId=8.0 exceeded memory limit (413790208 > 209715200), being killed
srun: Job step aborted: Waiting up to 7 seconds for job step to finish.
slurmstepd-n1: error: StepId=8.0 exceeded memory limit (413790208 > 209715200), being killed
"""


@pytest.mark.parametrize("job_log", ["", "mine: fit: 8,152 pods\n"])
def test_a_job_killed_by_slurm_has_the_message_of_slurm(run, tmp_path, job_log):
    run.start()
    run.log.write_text(job_log)
    slurm_log = tmp_path / "slurm_logs" / "8.log"
    slurm_log.parent.mkdir()
    slurm_log.write_text(SLURM_LOG)
    run.tell(
        LogEvent.JOB_ERROR,
        jobid=4,
        rule_name="fit",
        rule_msg="SLURM-job '8' failed, SLURM status is: 'FAILED'. Reason: Unknown.For further error details see the",
        log=[str(run.log), str(slurm_log)],
    )
    run.tell(message="Trying to restart job 4.")
    assert (
        "\nerror in mine: fit\nSLURM-job '8' failed, SLURM status is: 'FAILED'. Reason: Unknown.\n"
        "slurmstepd-n1: error: StepId=8.0 exceeded memory limit (413790208 > 209715200), being killed\n"
        "The whole log of the job is "
    ) in run.text
    assert run.text.endswith("It runs again, with more memory and time.\n\n")


def test_only_the_failed_job_of_a_group_is_reported(run, tmp_path):
    run.start()
    draw_log = tmp_path / "draw.log"
    run.tell(LogEvent.JOB_INFO, jobid=5, rule_name="draw", wildcards={"trace": "mine"}, log=[str(draw_log)])
    run.log.write_text("mine: fit: no durations.\n")
    draw_log.write_text("mine: draw: 3 charts\n")
    slurm_log = tmp_path / "slurm_logs" / "9.log"
    slurm_log.parent.mkdir()
    slurm_log.write_text("Error in rule fit, jobid: 0:\n")
    jobs = [{"jobid": 4, "rule_name": "fit"}, {"jobid": 5, "rule_name": "draw"}]
    run.tell(LogEvent.GROUP_ERROR, groupid="analyses", aux_logs=[str(slurm_log)], job_error_info=jobs)
    run.tell(LogEvent.JOB_ERROR, jobid=5, rule_name="draw", indent=True)
    assert run.text.endswith("\nerror in mine: fit\nmine: fit: no durations.\n\n")
    assert "draw" not in run.text


def test_a_study_of_one_trace_ends_with_its_brief():
    text = summarise_briefs({"one": make_brief(proxy(), {}, ABOUT)}, width=80)
    assert text[0].startswith("31.8% of ended jobs failed, and failed attempts used 48.6% of GPU time.")
    assert any(line.startswith("Withheld: MTTF of a 1,024-GPU job; ETTR") for line in text)
    assert any(line.startswith("Next: Save state before the time limit (≤ 895,000 GPU-h in 99 days") for line in text)
    assert len(text) <= 8 and all(len(line) <= 80 for line in text)
    assert not any("{" in line for line in text)


def test_a_study_of_several_traces_has_a_line_for_each():
    briefs = {f"trace {index}": make_brief(numbers(), {}, ABOUT) for index in range(8)}
    summary = summarise_briefs(briefs, width=80)
    assert summary[1].startswith("trace 1: 31.8% of ended jobs failed") and summary[-1] == "and 2 more"
    assert len(summary) == 7


def test_the_end_names_the_report(run):
    message = format_end_of_run(run.page, lambda: {"one": make_brief(numbers(), {}, ABOUT)})
    run.tell(message=message, is_study_message=True)
    assert "31.8% of ended jobs failed" in run.text
    assert run.text.endswith(f"\nThe report: {run.page} (0 s)\n")
    run.tell(message=format_end_of_run(None, dict), is_study_message=True)
    run.tell(message=STOPPED, is_study_message=True)
    assert run.text.endswith(f"\nDone. (0 s)\n{STOPPED}\n")
