"""Write the logs of three training runs among the jobs of the Slurm sample, with a known answer.

Each log is that of the runs of one job, of the longest that a node failure interrupted. An attempt starts up for
START_UP_S, loads the last save for LOAD_S, and does a step every `step_s`; it saves every SAVE_STEPS steps for SAVE_S.
What it did since its last save is done again by the next attempt.

- train-a.log, torchtitan, with the id of its job. In its first attempt all steps stop for HANG_S.
- train-b.log, Megatron-LM with a clock, without an id. Its steps are as they are.
- train-c.log, torchtitan, with the id. From the middle of its longest attempt on, a step takes SLOWER times as long.

Nothing here is random, so no other file changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from samples.sacct.sample_cluster import Run

LOGS = ("train-a.log", "train-b.log", "train-c.log")
START_UP_S, LOAD_S, SAVE_S = 240, 90, 45
LOG_STEPS, SAVE_STEPS = 10, 100
STEP_S = {"train-a.log": 24, "train-b.log": 30, "train-c.log": 36}
HANG_S, SLOWER = 1_800, 1.25
Truth = dict[str, float]


def training_logs(runs: Sequence[Run], gpus: Sequence[int], job_ids: Sequence[int], end_s: int) -> dict[str, list[str]]:
    """Return the lines of each log. runs: of all jobs; gpus, job_ids: of each job; end_s: when the dump was printed."""
    return {name: lines for name, (_, lines, _) in plan_logs(runs, gpus, job_ids, end_s).items()}


def plan_logs(
    runs: Sequence[Run], gpus: Sequence[int], job_ids: Sequence[int], end_s: int
) -> dict[str, tuple[int, list[str], Truth]]:
    """Return the job of each log, its lines, and the seconds of each class."""
    by_job: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        if run.start_s is not None:
            by_job[run.job].append(run)

    def rank(job: int) -> tuple[bool, int]:
        interrupted = any(run.state == "NODE_FAIL" for run in by_job[job][:-1])
        return interrupted and by_job[job][-1].state == "COMPLETED", sum(run.end_s - run.start_s for run in by_job[job])

    ended = [job for job, own in by_job.items() if all(run.end_s is not None and run.end_s < end_s for run in own)]
    # Jobs that share no node would also do; different ids and sizes tell them apart.
    jobs = sorted((job for job in ended if gpus[job] >= 16), key=lambda job: (*rank(job), -job), reverse=True)[:3]
    jobs += [jobs[-1] if jobs else ended[0]] * (3 - len(jobs))
    return {
        name: (job_ids[job], *write_log(name, by_job[job], job_ids[job], gpus[job]))
        for name, job in zip(LOGS, jobs, strict=True)
    }


def write_log(name: str, runs: Sequence[Run], job_id: int, gpus: int) -> tuple[list[str], Truth]:
    """Return the lines of the log of a job, and the seconds of each class."""
    truth: Truth = defaultdict(float)
    lines: list[str] = []
    saved = 0
    longest = max(runs, key=lambda run: run.end_s - run.start_s)
    plans = []
    for number, run in enumerate(runs):
        truth["queued"] += run.start_s - run.submit_s
        is_slower = name == LOGS[2] and run is longest
        attempt = _Attempt(name, run, saved, gpus, HANG_S if name == LOGS[0] and number == 0 else 0, is_slower)
        lines += attempt.write(job_id)
        saved = attempt.saved
        plans.append(attempt)
    for before, run in pairwise(runs):
        truth["down"] += run.submit_s - before.end_s
    for attempt, following in zip(plans, [*plans[1:], None], strict=True):
        # The next attempt does again what lies behind the last save.
        lost_from = following.first if following else attempt.last
        for step, seconds in attempt.step_s:
            if step > lost_from:
                truth["lost"] += seconds
            else:
                truth["productive"] += STEP_S[name]
                truth["slow"] += seconds - STEP_S[name]
        for label, seconds in attempt.truth.items():
            truth[label] += seconds
    return lines, {label: seconds for label, seconds in truth.items() if seconds}


class _Attempt:
    """The steps of one run of a job: step_s has (step, seconds) of those in the log."""

    def __init__(self, name: str, run: Run, first: int, gpus: int, hang_s: int, is_slower: bool) -> None:
        self.name, self.run, self.first, self.gpus = name, run, first, gpus
        self.hang_s, self.is_slower = hang_s, is_slower
        self.saved = self.last = first
        self.step_s: list[tuple[int, float]] = []
        self.truth: Truth = defaultdict(float)

    def write(self, job_id: int) -> Iterator[str]:
        run, is_titan = self.run, self.name != LOGS[1]
        start, end = run.start_s, run.end_s
        assert start is not None
        assert end is not None
        yield f"SLURM_JOB_ID={job_id}" if is_titan else f"using world size: {self.gpus}, data-parallel size: 8"
        time: float = start + START_UP_S
        if self.first and time + LOAD_S < end:
            if is_titan:
                yield self.line(time, f"Loading the checkpoint at step {self.first}")
                yield self.line(time + LOAD_S, f"Finished loading the checkpoint in {LOAD_S:.2f} seconds.")
            else:
                yield self.line(time, f"loading checkpoint from /data/run at iteration {self.first}")
                text = f"successfully loaded checkpoint from /data/run [ t 1/8, p 1/4 ] at iteration {self.first}"
                yield self.line(time + LOAD_S, text)
            time += LOAD_S
            self.truth["restore"] += LOAD_S
        elif is_titan:
            yield self.line(time, f"Training starts at step {self.first + 1}")
        begin, step, half = time, self.first, start + (end - start) / 2
        self.truth["start_up"] += min(START_UP_S, end - start)
        pending: list[tuple[int, float]] = []
        while True:
            seconds = STEP_S[self.name] * (SLOWER if self.is_slower and time > half else 1)
            wait = self.hang_s if self.hang_s and step - self.first == 55 else 0
            if time + seconds + wait + SAVE_S > end:
                break
            step, time = step + 1, time + seconds + wait
            self.truth["stalled"] += wait
            pending.append((step, seconds))
            if step % LOG_STEPS == 0:
                self.step_s += pending
                yield self.line(time, self.format_step(step, (time - begin - wait) / len(pending)))
                pending, begin, self.last = [], time, step
            if step % SAVE_STEPS == 0:
                if is_titan:
                    yield self.line(time, "Saving the checkpoint.")
                    text = f"Finished saving the checkpoint in {SAVE_S:.2f} seconds."
                else:
                    yield self.line(time, f"saving checkpoint at iteration {step} to /data/run in torch_dist format")
                    text = f"successfully saved checkpoint at iteration {step} to /data/run"
                time += SAVE_S
                yield self.line(time, text)
                begin, self.saved = time, step
                self.truth["checkpoint"] += SAVE_S
        is_done = run.state == "COMPLETED"
        # What follows the last line of steps and its save, to the end.
        self.truth["shutdown" if is_done else "detection"] += end - begin
        if is_done and is_titan:
            yield self.line(end - 1, "Training completed")
        elif is_done:
            yield self.line(end - 1, "[after training is done] datetime: " + _clock(end - 1))
        elif run.state == "NODE_FAIL" and is_titan:
            at = _clock(end).replace(" ", "T")
            yield f"slurmstepd: error: *** STEP {job_id}.0 ON n001 CANCELLED AT {at} DUE TO NODE FAILURE ***"

    def format_step(self, step: int, seconds: float) -> str:
        if self.name == LOGS[1]:
            head = f"iteration {step:8}/  100000 | consumed samples: {512 * step:12} | "
            return f"{head}elapsed time per iteration (ms): {1000 * seconds:.1f} | lm loss: 2.1E+00 |"
        return f"step: {step:2}  loss:  2.51  grad_norm:  0.45  memory: 69.83GiB(88.19%)  tps: 4,265  mfu: 37.58%"

    def line(self, time: float, text: str) -> str:
        return (
            f"[{_clock(time)}] {text}" if self.name == LOGS[1] else f"[titan] {_clock(time)},000 - root - INFO - {text}"
        )


def _clock(time: float) -> str:
    return f"{datetime.fromtimestamp(int(time), UTC):%Y-%m-%d %H:%M:%S}"
