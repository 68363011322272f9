"""No window is too short: parts of any length and order, even without a run, give every table."""

import random

import whole_study
from hypothesis import example, given, settings
from hypothesis import strategies as st

HEADER = (
    "JobIDRaw|JobID|Cluster|User|Account|Partition|QOS|State|ExitCode|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw"
    "|NNodes|NodeList|ReqTRES|AllocTRES"
)
STATES = ["COMPLETED", "FAILED", "NODE_FAIL", "RUNNING", "PENDING", "CANCELLED", "TIMEOUT"]
SPANS = st.sampled_from([0, 1, 900, 86_400, 604_800])
# Jobs, seconds since the part before, span of the submissions, longest run, and whether all jobs still wait.
PARTS = st.tuples(st.sampled_from([1, 2, 40]), SPANS.map(lambda s: s - 86_400), SPANS, SPANS, st.booleans())


def write_part(number, begin_s, jobs, span_s, longest_s, is_waiting):
    draw, rows = random.Random(number), [HEADER]
    for job in range(1000 * number, 1000 * number + jobs):
        submit = begin_s + draw.randint(0, span_s)
        start = submit + draw.randint(0, span_s)
        run = draw.randint(0, longest_s)
        state = "PENDING" if is_waiting else draw.choice(STATES)
        times = f"{start}|{'Unknown' if state == 'RUNNING' else start + run}|{run}"
        node = f"n{draw.randrange(3)}"
        if state == "PENDING":
            times, node = "Unknown|Unknown|0", "None assigned"
        request = "gres/gpu=1,node=1|gres/gpu=1,node=1"
        owner = f"c|u{draw.randrange(3)}|a|gpu|normal"
        rows.append(f"{job}|{job}|{owner}|{state}|0:0|{submit}|{submit}|{times}|60|1|{node}|{request}")
    return "\n".join(rows) + "\n"


@settings(max_examples=min(settings().max_examples, 2))
@given(st.lists(PARTS, min_size=1, max_size=3))
@example([(40, 0, 604_800, 86_400, False), (5, 2_000_000, 900, 0, True)])
@example([(1, 0, 0, 0, False)])
def test_parts_of_any_window_give_every_table(tmp_path_factory, parts):
    folder, begin_s = tmp_path_factory.mktemp("windows"), 1_735_689_600
    (folder / "dumps").mkdir()
    for number, (jobs, gap_s, *rest) in enumerate(parts):
        begin_s += gap_s
        (folder / f"dumps/{number}.txt").write_text(write_part(number, begin_s, jobs, *rest))
    config = {"study": ["mine"], "registry": {"mine": {"format": "sacct", "folder": "dumps"}}}
    result = whole_study.run(config, folder, only=lambda job: job.script not in whole_study.OF_PAGES)
    assert (result.job, result.refused, result.crash, result.warned) == (None, None, None, [])
