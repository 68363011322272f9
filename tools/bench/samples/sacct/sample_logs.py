"""Draw the kernel log of the Slurm sample's nodes: what `journalctl -k -o short-iso` prints, joined over the nodes.

True causes, so that tests can find them again
----------------------------------------------
- A failure of a node writes the error of its cause some minutes before (CAUSES); SILENT_PER_MILLE of them write none.
  The cause is the one of its health event if it has one.
- Codes that end nothing occur at random (HARMLESS): a memory row was remapped, a link corrected an error.
- A user's failed run may write an error of its application in its last seconds (APPLICATION): of one user in four, and
  each run that is out of memory.
- A line often comes several times. A node that comes back writes that it boots. One node has no log.

The random stream is separate: these draws change no other file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from samples.draws import Random
from samples.sacct.sample_cluster import Failure, Run

DAY_S = 86_400
Line = tuple[int, int, str]  # time, node, message
Event = tuple[int, int, str, str]  # time, node, code, severity

CAUSES = {
    "IB_LINK": "mlx5_core {pci}.0: Port: 1 Link DOWN",
    "FS_MOUNT": "nfs: server home not responding, still trying",
    "GPU_ECC": "NVRM: Xid (PCI:{pci}): 48, pid='<unknown>', name=<unknown>, DBE (double bit error) on partition {gpu}",
    "PCIE": "pcieport {pci}.0: AER: Uncorrectable (Fatal) error message received from {pci}.0",
    "NVLINK": "NVRM: Xid (PCI:{pci}): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link {gpu}",
    "XID79": "NVRM: Xid (PCI:{pci}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
}
HARMLESS = (
    "NVRM: Xid (PCI:{pci}): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping",
    "pcieport {pci}.0: AER: Corrected error message received from {pci}.0",
)
APPLICATION = (
    "NVRM: Xid (PCI:{pci}): 31, pid={pid}, name=python, Ch 00000010, MMU Fault: ENGINE GRAPHICS faulted",
    "NVRM: Xid (PCI:{pci}): 43, pid={pid}, name=python, Ch 00000010",
)
OUT_OF_MEMORY = "Memory cgroup out of memory: Killed process {pid} (python) total-vm:98566144kB, anon-rss:94371840kB"
BOOT = "Linux version 6.8.0-45-generic (buildd@build) #45-Ubuntu SMP PREEMPT_DYNAMIC"
BACKGROUND = "perf: interrupt took too long (2503 > 2500), lowering kernel.perf_event_max_sample_rate to 79750"
BUSES = ("07", "0f", "47", "4e", "87", "90", "b7", "bd")
SILENT_PER_MILLE = 150
EARLIEST_S, LATEST_S = 280, 2  # from the error to the failure
HARMLESS_PER_NODE_DAY = 0.02
USERS_PER_APPLICATION_ERROR, APPLICATION_PER_MILLE = 4, 600
BACKGROUND_S = 3 * DAY_S
WITHOUT_LOG = 5


def kernel_log(
    rng: Random,
    runs: Sequence[Run],
    users: Sequence[int],
    failures: Sequence[Failure],
    events: Sequence[Event],
    nodes: int,
    first_s: int,
    end_s: int,
) -> list[str]:
    """Return the lines of the log in order of time. users: the user of each job; nodes have the names n001, n002 ..."""
    lines = [
        *_failure_lines(rng, failures, events),
        *_application_lines(rng, runs, users),
        *_other_lines(rng, nodes, first_s, end_s),
    ]
    return [
        f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%dT%H:%M:%S}+00:00 n{node + 1:03} kernel: {message}"
        for time_s, node, message in sorted(lines)
        if first_s <= time_s < end_s and node != WITHOUT_LOG
    ]


def _failure_lines(rng: Random, failures: Sequence[Failure], events: Sequence[Event]) -> Iterator[Line]:
    """Yield the error before each failure of a node that is up, and the boot after it."""
    up_s: dict[int, int] = {}
    codes = list(CAUSES)
    for failure in failures:
        if failure.at_s < up_s.get(failure.node, 0):
            continue
        up_s[failure.node] = failure.at_s + failure.out_s
        near = [
            code
            for time_s, node, code, _ in events
            if node == failure.node and code in CAUSES and abs(time_s - failure.at_s) <= 600
        ]
        code = near[0] if near else codes[int(rng.integers(len(codes)))]
        yield up_s[failure.node] - 60, failure.node, BOOT
        before_s = int(rng.integers(LATEST_S, EARLIEST_S))
        if rng.integers(1_000) >= SILENT_PER_MILLE:
            yield from _repeat(rng, failure.at_s - before_s, failure.node, CAUSES[code])


def _application_lines(rng: Random, runs: Sequence[Run], users: Sequence[int]) -> Iterator[Line]:
    """Yield the errors that applications cause in the last seconds of their runs."""
    for run in runs:
        if run.start_s is None or run.end_s is None or run.failed_node is not None:
            continue
        node = run.nodes[int(rng.integers(len(run.nodes)))]
        moment = max(run.start_s, run.end_s - int(rng.integers(20)))
        if run.state == "OUT_OF_MEMORY":
            yield from _repeat(rng, moment, node, OUT_OF_MEMORY)
        is_prone = users[run.job] % USERS_PER_APPLICATION_ERROR == 1
        if run.state == "FAILED" and is_prone and rng.integers(1_000) < APPLICATION_PER_MILLE:
            yield from _repeat(rng, moment, node, APPLICATION[int(rng.integers(len(APPLICATION)))])


def _other_lines(rng: Random, nodes: int, first_s: int, end_s: int) -> Iterator[Line]:
    """Yield errors that end nothing, and lines of no interest."""
    days = (end_s - first_s) // DAY_S
    for _ in range(int(HARMLESS_PER_NODE_DAY * nodes * days)):
        moment, node = first_s + int(rng.integers(days * DAY_S)), int(rng.integers(nodes))
        yield from _repeat(rng, moment, node, HARMLESS[int(rng.integers(len(HARMLESS)))])
    for node in range(nodes):
        for start_s in range(first_s, end_s, BACKGROUND_S):
            yield start_s + int(rng.integers(BACKGROUND_S)), node, BACKGROUND


def _repeat(rng: Random, moment: int, node: int, text: str) -> Iterator[Line]:
    """Yield the line, often several times within seconds, with the address of a GPU."""
    gpu, pid = int(rng.integers(len(BUSES))), int(rng.integers(2_000, 400_000))
    message = text.format(pci=f"0000:{BUSES[gpu]}:00", gpu=gpu, pid=pid)
    for number in range(int(rng.choice([1, 1, 2, 4, 9]))):
        yield moment + number, node, message
