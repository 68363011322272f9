"""Measure speed and memory of reading logs of nodes, and of grep and a loop in Python on the same file in the same run.

Makes a kernel log of 400 nodes in the form of journalctl -o short-iso, with an error in every 2,000 lines. grep only
finds the lines; the loop also counts them by node and hour, as the study does to know when a log was written.
usage: node_logs.py FOLDER [--gb N] [--rounds N]
"""

import argparse
import random
import sys
from pathlib import Path

from clock import ROOT, machine, measure_in_turn

MESSAGES = (
    "usb 1-1: new high-speed USB device number 3 using xhci_hcd",
    "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Opts: (null)",
    'audit: type=1400 audit(1740816000.123:45): apparmor="STATUS" operation="profile_load" name="/usr/bin/man"',
    "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
    "perf: interrupt took too long (2503 > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
)
ERROR = "NVRM: Xid (PCI:0000:05:00): 31, pid=1, name=python, Ch 00000008"
STUDY = """
import sys
from pathlib import Path
from ttf.study.configuration.log_rules import load_log_rules
from ttf.raw.node_logs.node_names import NodeNames
from ttf.raw.node_logs.reader import LogOptions, read_node_logs
from ttf.raw.node_logs.rules import Rules
rules = Rules.from_options(load_log_rules(Path(sys.argv[1]) / "config/node_log_rules.yaml"))
logs = read_node_logs([Path("kern.log")], LogOptions(rules, "UTC", None, NodeNames([]), 5, 604_800))
print(logs.errors.height, logs.account.rows)
"""
LOOP = """
import re, sys
from collections import Counter
pattern = re.compile("NVRM: Xid|SXid|EDAC|Out of memory|nfs: server|AER: |Machine check")
hours, errors = Counter(), 0
for line in open("kern.log", encoding="utf-8", errors="replace"):
    time, node, message = line.split(" ", 2)
    hours[node, time[:13]] += 1
    errors += bool(pattern.search(message))
print(errors, len(hours))
"""
PATTERN = "NVRM: Xid|SXid|EDAC|Out of memory|nfs: server|AER: |Machine check"


def write_log(path: Path, lines: int) -> None:
    rng = random.Random(38)
    with path.open("w", encoding="utf-8") as log:
        for line in range(lines):
            second = line * 28 * 86_400 // lines
            day, rest = divmod(second, 86_400)
            time = f"2025-03-{1 + day:02d}T{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}+0000"
            message = rng.choice(MESSAGES) if line % 2_000 else ERROR
            log.write(f"{time} gpu{rng.randrange(400):03d} kernel: {message}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    log = options.folder / "kern.log"
    write_log(log, int(options.gb * 8_500_000))
    megabytes = log.stat().st_size / 1e6
    commands = {
        "this study": [sys.executable, "-c", STUDY, str(ROOT)],
        "grep -E": ["grep", "-cE", PATTERN, "kern.log"],
        "a loop in Python": [sys.executable, "-c", LOOP],
    }
    costs = measure_in_turn(commands, options.folder, options.rounds)
    for name, cost in costs.items():
        speeds = f"{megabytes / cost.seconds:,.0f} MB/s, {megabytes / cost.cpu_seconds:,.0f} MB a CPU second"
        sys.stdout.write(f"{name}: {megabytes:,.0f} MB in {cost.seconds:.1f} s: {speeds}, {cost.gigabytes:.2f} GB\n")
    sys.stdout.write(f"{machine('polars')}\n")
    log.unlink()


if __name__ == "__main__":
    main()
