"""The same study in other surroundings, which are none of its business: the same bytes."""

import random
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import whole_study
from faults.mutations import lay_out
from faults.traces import trace
from faults.verdict import Verdict
from surroundings import surroundings

PATHS = ("with blank", "{a}", "a{{b}}c", "ünïcode", "it's", "日本語", "a;b", "$HOME", "a*b[1]", "<x>")


def cases(seed: int, count: int) -> Iterator[tuple]:
    """("surroundings", name of a way or of a folder), drawn without repetition."""
    with tempfile.TemporaryDirectory() as place:
        ways = [*surroundings(Path(place) / "made"), *(f"path {name}" for name in PATHS)]
    for name in random.Random(f"surroundings {seed}").sample(ways, min(count, len(ways))):
        yield "surroundings", name


def judge(case: tuple) -> Verdict:
    kind, name = case
    with tempfile.TemporaryDirectory(prefix="fault-") as place:
        if name.startswith("path "):
            made = _made(Path(place) / name.removeprefix("path "))
        else:
            made = _made(Path(place) / "here", **surroundings(Path(place) / "made")[name])
    differ = sorted(file for file, _ in set(_usual()) ^ set(made))
    fault = f"bytes: {', '.join(differ[:10])}" if differ else ""
    return Verdict(kind, name, "fault" if fault else "accepted", fault)


@cache
def _usual() -> frozenset[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="fault-") as place:
        return _made(Path(place) / "usual")


def _made(folder: Path, **how) -> frozenset[tuple[str, str]]:
    """The products of a study in the folder, and their SHA-256."""
    files, entry = trace("sacct_with_events")
    lay_out(folder / "raw", files)
    config = {"study": ["mine"], "registry": {"mine": entry}}
    done = whole_study.run_apart(config, folder, how.pop("threads", 1), pdf=True, **how)
    return frozenset(done.hashes.items()) if done.ok else frozenset({("", str(done.refused or done.crash)[-1500:])})
