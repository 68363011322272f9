"""Test that every input and every disturbance gives a right answer or one clear message (docs/reliability.md).

    python tests/faults/run.py [--seeds 1 2 3] [--inputs 700] [--only input prefix ...] [--write docs/reliability.md]

Prints each shortcoming with the way to reproduce it, and the counts as last line; exit 1 if there is any.
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
sys.path[:0] = [str(ROOT / folder) for folder in ("scripts", "tests", "tests/support", "tools/bench")]

from faults import configurations, disk, edges, elsewhere, inputs, stopping, tampering  # noqa: E402
from faults.pool import judge_all  # noqa: E402
from faults.verdict import Verdict  # noqa: E402
from study_runs import hide_quarto  # noqa: E402

# Kind -> module with cases(seed, count) and judge(case), number of cases per seed, parallel processes.
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
    parser.add_argument("--share", type=float, default=1, help="share of the default number of cases")
    parser.add_argument("--minutes", type=float, default=600, help="start no further case after this time")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--write", type=Path, help="page to write the table of results to")
    options = parser.parse_args()
    hide_quarto()
    start_s, verdicts = time.monotonic(), []
    for kind in options.only:
        for verdict in judge_kind(kind, options.seeds, options.share, start_s + 60 * options.minutes):
            verdicts.append(verdict)
            if verdict.shortcoming:
                print(f"FAULT {verdict.kind} {verdict.name}\n  {verdict.words}", flush=True)
            elif len(verdicts) % 50 == 0:
                print(f"{len(verdicts):,} tried, {time.monotonic() - start_s:.0f} s", flush=True)
    if options.write:
        from faults import reliability

        reliability.write(options.write, verdicts, options.seeds)
    print(last_line(verdicts, time.monotonic() - start_s))
    return int(any(verdict.shortcoming for verdict in verdicts))


def judge_kind(kind: str, seeds: list[int], share: float, deadline: float = float("inf")) -> Iterator[Verdict]:
    module, count, processes = KINDS[kind]
    cases = (case for seed in seeds for case in module.cases(seed, max(1, round(share * count))))
    cases = itertools.takewhile(lambda _: time.monotonic() < deadline, cases)
    yield from judge_all(judge, cases, min(processes, os.cpu_count() or 1))


def last_line(verdicts: list[Verdict], seconds: float) -> str:
    tried: Counter = Counter()
    for verdict in verdicts:
        tried[verdict.kind] += verdict.tried
    short = Counter(verdict.shortcoming for verdict in verdicts if verdict.shortcoming)
    fell = ", ".join(f"{count} {shortcoming}" for shortcoming, count in sorted(short.items()))
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in tried.items())
    return f"{tried.total():,} tried ({kinds}) in {seconds:.0f} s; fell short: {fell or 0}"


if __name__ == "__main__":
    sys.exit(main())
