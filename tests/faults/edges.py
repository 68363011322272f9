"""Valid input at its edges through all analyses: first rows of tables, traces with constant columns."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import whole_study
from edge_traces import all_cases, write_case
from faults.verdict import Verdict, fault_of_message


def cases(seed: int, count: int) -> Iterator[tuple]:
    for name, rows in random.Random(f"edge {seed}").sample(all_cases(), min(count, len(all_cases()))):
        yield "edge", name, rows


def judge(case: tuple) -> Verdict:
    kind, *edge = case
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        result = whole_study.run(write_case(tuple(edge), Path(folder)), Path(folder))
    if result.crash:
        return Verdict(kind, str(edge), "fault", f"traceback: {result.job}: {result.crash[-2500:]}")
    fault = fault_of_message(result.refused) if result.refused else ""
    return Verdict(kind, str(edge), "fault" if fault else "refused" if result.refused else "accepted", fault)
