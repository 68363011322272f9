"""Measure speed and memory of reading a training log, and of grep and a loop in Python on the same file in one run.

Makes a log of torchtitan with a step in every 20 lines, a save in every 2,000 and eight ranks that print each step.
usage: training_logs.py FOLDER [--gb N] [--rounds N]
"""

import argparse
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

from clock import ROOT, machine, measure_in_turn

OTHERS = (
    "[GC] Performing periodic GC collection took 0.02 seconds",
    "NCCL INFO Channel 03/0 : 5[5] -> 6[6] via P2P/CUMEM/read comm 0x55d0c1 nRanks 08",
    "UserWarning: None of the inputs have requires_grad=True. Gradients will be None",
    "batch loaded from shard 00417 of 09000, 16 documents, 131072 tokens, padding 0.4%",
)
STUDY = """
import sys
from pathlib import Path
from ttf.raw.training_logs.profiles import Profiles
from ttf.raw.training_logs.event_reader import read_rows
from ttf.study.configuration.log_profiles import load_log_profiles
profiles = Profiles.from_options(load_log_profiles(Path(sys.argv[1]) / "config/training_log_profiles.yaml"))
print(read_rows(Path("train.log"), profiles, "UTC").height)
"""
PATTERN = "step: +[0-9]+ +loss:|Saving the checkpoint|Finished saving|Training (starts|completed)|Traceback"
LOOP = f"""
import re
from datetime import datetime
pattern = re.compile("{PATTERN}")
times = []
for line in open("train.log", encoding="utf-8", errors="replace"):
    if pattern.search(line):
        if clock := re.search("20[0-9-]+ [0-9:,]+", line):
            times.append(datetime.strptime(clock[0], "%Y-%m-%d %H:%M:%S,%f"))
print(len(times))
"""


def write_log(path: Path, lines: int) -> None:
    rng = random.Random(50)
    with path.open("w", encoding="utf-8") as log:
        for line in range(lines):
            time = (
                f"{datetime.fromtimestamp(1_750_000_000 + line / 4, UTC):%Y-%m-%d %H:%M:%S},{rng.randrange(1000):03d}"
            )
            rank, step = line % 8, line // 160
            text = f"step: {step:2}  loss:  2.51  grad_norm:  0.45  memory: 69.83GiB(88.19%)  tps: 4,265"
            text = text if line % 160 < 8 else OTHERS[rng.randrange(len(OTHERS))]
            text = "Saving the checkpoint." if line % 16_000 == 9 else text
            text = "Finished saving the checkpoint in 0.50 seconds." if line % 16_000 == 11 else text
            log.write(f"[rank{rank}]:[titan] {time} - root - INFO - {text}\n" if line % 50 else f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gb", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    log = options.folder / "train.log"
    write_log(log, int(options.gb * 8_500_000))
    megabytes = log.stat().st_size / 1e6
    commands = {
        "this study": [sys.executable, "-c", STUDY, str(ROOT)],
        "grep -E": ["grep", "-cE", PATTERN, "train.log"],
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
