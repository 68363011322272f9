"""Good input at its edges, through all analyses: the first rows of tables, traces in which something is all alike."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import whole_study
from faults.verdict import Verdict, fault_of_message
from prefixes import REAL, all_cases, config_of


def cases(seed: int, count: int) -> Iterator[tuple]:
    """("edge", trace, rows), drawn without repetition; of real traces none, which are large."""
    all_of_them = [case for case in all_cases() if case[0] not in REAL]
    for name, rows in random.Random(f"edge {seed}").sample(all_of_them, min(count, len(all_of_them))):
        yield "edge", name, rows


def judge(case: tuple) -> Verdict:
    kind, *which = case
    with tempfile.TemporaryDirectory(prefix="fault-") as place:
        done = whole_study.run(config_of(tuple(which), Path(place)), Path(place))
    if done.crash:
        return Verdict(kind, str(which), "fault", f"traceback: {done.job}: {done.crash[-2500:]}")
    fault = fault_of_message(done.refused) if done.refused else ""
    return Verdict(kind, str(which), "fault" if fault else "refused" if done.refused else "accepted", fault)
