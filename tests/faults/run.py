"""Whatever the study is given, or whatever befalls it: a right answer or one clear message. See docs/reliability.md.

    python tests/faults/run.py [--seeds 1 2 3] [--inputs 700] [--only input prefix ...] [--write docs/reliability.md]

Prints what fell short, each with how to make it again, and the counts as its last line; exit 1 if anything did.
"""

import argparse
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("scripts", "workflow", "tests", "bench")]

from faults import configurations, disk, edges, elsewhere, inputs, stopping, tampering  # noqa: E402
from faults.pool import judged  # noqa: E402
from faults.verdict import Verdict  # noqa: E402
from study_runs import hide_quarto  # noqa: E402

# Kind -> the module with its cases(seed, count) and judge(case), how many of it a seed has, and how many at once.
KINDS = {
    "input": (inputs, 620, 2),
    "edge": (edges, 60, 2),
    "configuration": (configurations, 200, 2),
    "surroundings": (elsewhere, 30, 2),
    "tampering": (tampering, 40, 1),
    "stop": (stopping, 2, 1),
    "disk": (disk, 1, 1),
}


def judge(case: tuple) -> Verdict:
    return KINDS[case[0]][0].judge(case)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--share", type=float, default=1, help="of the usual number of cases")
    parser.add_argument("--minutes", type=float, default=600, help="after which no other case is begun")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--write", type=Path, help="the page with the table of what was tried")
    asked = parser.parse_args()
    hide_quarto()
    started, verdicts = time.monotonic(), []
    for kind in asked.only:
        for verdict in of_kind(kind, asked.seeds, asked.share, started + 60 * asked.minutes):
            verdicts.append(verdict)
            if verdict.shortcoming:
                print(f"FAULT {verdict.kind} {verdict.name}\n  {verdict.words}", flush=True)
            elif len(verdicts) % 50 == 0:
                print(f"{len(verdicts):,} tried, {time.monotonic() - started:.0f} s", flush=True)
    if asked.write:
        from faults import reliability

        reliability.write(asked.write, verdicts, asked.seeds)
    print(last_line(verdicts, time.monotonic() - started))
    return int(any(verdict.shortcoming for verdict in verdicts))


def of_kind(kind: str, seeds: list[int], share: float, until: float = float("inf")) -> Iterator[Verdict]:
    module, count, processes = KINDS[kind]
    cases = (case for seed in seeds for case in module.cases(seed, max(1, round(share * count))))
    cases = itertools.takewhile(lambda _: time.monotonic() < until, cases)
    yield from judged(judge, cases, min(processes, os.cpu_count() or 1))


def last_line(verdicts: list[Verdict], seconds: float) -> str:
    tried: Counter = Counter()
    for verdict in verdicts:
        tried[verdict.kind] += verdict.tried
    short = Counter(verdict.shortcoming for verdict in verdicts if verdict.shortcoming)
    fell = ", ".join(f"{count} {what}" for what, count in sorted(short.items()))
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in tried.items())
    return f"{tried.total():,} tried ({kinds}) in {seconds:.0f} s; fell short: {fell or 0}"


if __name__ == "__main__":
    sys.exit(main())
