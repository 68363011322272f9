"""The same study gives the same bytes in other environments."""

import random
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import whole_study
from faults.mutations import lay_out
from faults.traces import trace
from faults.verdict import Verdict
from run_environments import surroundings

PATHS = ("with blank", "{a}", "a{{b}}c", "ünïcode", "it's", "日本語", "a;b", "$HOME", "a*b[1]", "<x>")


def cases(seed: int, count: int) -> Iterator[tuple]:
    with tempfile.TemporaryDirectory() as folder:
        names = [*surroundings(Path(folder) / "made"), *(f"path {name}" for name in PATHS)]
    for name in random.Random(f"surroundings {seed}").sample(names, min(count, len(names))):
        yield "surroundings", name


def judge(case: tuple) -> Verdict:
    kind, name = case
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        if name.startswith("path "):
            products = _run_study(Path(folder) / name.removeprefix("path "))
        else:
            products = _run_study(Path(folder) / "here", **surroundings(Path(folder) / "made")[name])
    differ = sorted(file for file, _ in set(_reference_products()) ^ set(products))
    fault = f"bytes: {', '.join(differ[:10])}" if differ else ""
    return Verdict(kind, name, "fault" if fault else "accepted", fault)


@cache
def _reference_products() -> frozenset[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        return _run_study(Path(folder) / "usual")


def _run_study(folder: Path, **options) -> frozenset[tuple[str, str]]:
    files, entry = trace("sacct_with_events")
    lay_out(folder / "raw", files)
    config = {"study": ["mine"], "registry": {"mine": entry}}
    result = whole_study.run_in_subprocess(config, folder, options.pop("threads", 1), pdf=True, **options)
    return (
        frozenset(result.hashes.items())
        if result.ok
        else frozenset({("", str(result.refused or result.crash)[-1500:])})
    )
