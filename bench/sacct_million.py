"""A dump of `sacct` of any number of made-up records, some of them of one job that was requeued or preempted."""

import numpy as np

HEADER = (
    "JobIDRaw|JobID|Cluster|User|Account|Partition|QOS|State|ExitCode|DerivedExitCode|Submit|Eligible|Start|End|"
    "ElapsedRaw|Suspended|TimelimitRaw|NNodes|NodeList|ReqTRES|AllocTRES|Reason|Flags"
)
STATES = ["COMPLETED", "FAILED", "CANCELLED by 1007", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "REQUEUED", "PREEMPTED"]
SHARES = [0.6, 0.2, 0.1, 0.04, 0.02, 0.01, 0.02, 0.01]


def dump(records: int, seed: int = 1) -> str:
    """Text as sacct prints it, sorted by submission; a requeued or preempted job goes on in the record after."""
    random = np.random.default_rng(seed)
    states = random.choice(len(STATES), records, p=SHARES)
    goes_on = np.isin(states, [6, 7])
    job = np.cumsum(np.r_[True, ~goes_on[:-1]]) + 1_000_000
    runtime = random.lognormal(6, 2, records).astype(np.int64)
    wait = random.exponential(600, records).astype(np.int64)
    submit = 1_700_000_000 + np.cumsum(random.integers(0, 60, records))
    # The next record of a job is submitted when the run before ends.
    for place in np.flatnonzero(goes_on[:-1]):
        submit[place + 1] = submit[place] + wait[place] + runtime[place]
    start, end = submit + wait, submit + wait + runtime
    nodes = random.choice([1, 1, 1, 1, 2, 4, 8, 32], records)
    first = random.integers(1, 900, records)
    user = random.integers(1000, 1800, records)[job - job[0]]
    lines = [HEADER]
    for n in range(records):
        where = f"gpu[{first[n]:04d}-{first[n] + nodes[n] - 1:04d}]" if nodes[n] > 1 else f"gpu{first[n]:04d}"
        gpus = 8 * nodes[n]
        tres = f"billing={16 * nodes[n]},cpu={16 * nodes[n]},gres/gpu:a100={gpus},gres/gpu={gpus},mem={128 * nodes[n]}G"
        lines.append(
            f"{job[n]}|{job[n]}|main|u{user[n]}|lab{user[n] % 40}|gpu|normal|{STATES[states[n]]}|0:0|0:0|{submit[n]}|"
            f"{submit[n]}|{start[n]}|{end[n]}|{runtime[n]}|00:00:00|1440|{nodes[n]}|{where}|{tres},node={nodes[n]}|"
            f"{tres},node={nodes[n]}|None|SchedMain,StartRecieved"
        )
    return "\n".join(lines) + "\n"
