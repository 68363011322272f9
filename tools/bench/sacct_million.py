"""Make a dump of `sacct` with any number of synthetic records; some jobs are requeued or preempted."""

import numpy as np

HEADER = (
    "JobIDRaw|JobID|Cluster|User|Account|Partition|QOS|State|ExitCode|DerivedExitCode|Submit|Eligible|Start|End|"
    "ElapsedRaw|Suspended|TimelimitRaw|NNodes|NodeList|ReqTRES|AllocTRES|Reason|Flags"
)
STATES = ["COMPLETED", "FAILED", "CANCELLED by 1007", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "REQUEUED", "PREEMPTED"]
SHARES = [0.6, 0.2, 0.1, 0.04, 0.02, 0.01, 0.02, 0.01]


def dump(records: int, seed: int = 1) -> str:
    """Return text as sacct prints it, sorted by submission; a requeued or preempted job has further records."""
    random = np.random.default_rng(seed)
    states = random.choice(len(STATES), records, p=SHARES)
    is_continued = np.isin(states, [6, 7])
    job = np.cumsum(np.r_[True, ~is_continued[:-1]]) + 1_000_000
    runtime = random.lognormal(6, 2, records).astype(np.int64)
    wait = random.exponential(600, records).astype(np.int64)
    submit = 1_700_000_000 + np.cumsum(random.integers(0, 60, records))
    # The next record of a job is submitted at the end of the previous run.
    for index in np.flatnonzero(is_continued[:-1]):
        submit[index + 1] = submit[index] + wait[index] + runtime[index]
    start, end = submit + wait, submit + wait + runtime
    nodes = random.choice([1, 1, 1, 1, 2, 4, 8, 32], records)
    first = random.integers(1, 900, records)
    user = random.integers(1000, 1800, records)[job - job[0]]
    lines = [HEADER]
    for n in range(records):
        node_list = f"gpu[{first[n]:04d}-{first[n] + nodes[n] - 1:04d}]" if nodes[n] > 1 else f"gpu{first[n]:04d}"
        gpus = 8 * nodes[n]
        tres = f"billing={16 * nodes[n]},cpu={16 * nodes[n]},gres/gpu:a100={gpus},gres/gpu={gpus},mem={128 * nodes[n]}G"
        lines.append(
            f"{job[n]}|{job[n]}|main|u{user[n]}|lab{user[n] % 40}|gpu|normal|{STATES[states[n]]}|0:0|0:0|{submit[n]}|"
            f"{submit[n]}|{start[n]}|{end[n]}|{runtime[n]}|00:00:00|1440|{nodes[n]}|{node_list}|{tres},node={nodes[n]}|"
            f"{tres},node={nodes[n]}|None|SchedMain,StartRecieved"
        )
    return "\n".join(lines) + "\n"
