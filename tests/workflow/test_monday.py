"""A year of weekly dumps and one week more: what was made before is used again, and nothing of it can be told."""

from itertools import pairwise

import pytest
import weeks
from study_runs import Checkout

WEEKS, JOBS = 52, 60
CONFIG = {"study": ["mine"], "registry": {"mine": {"format": "sacct", "folder": "dumps"}}}
KEPT = ".snakemake/kept/mine"


def kept_by(study: Checkout) -> dict[str, int]:
    """What is kept -> when it was written."""
    folder = study.folder / KEPT
    return {str(place.relative_to(folder)): place.stat().st_mtime_ns for place in folder.glob("*/*")}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Dumps of which each has jobs of the week before that ran, waited or were requeued when it ended."""
    folder = weeks.write_weeks(tmp_path_factory.mktemp("year") / "dumps", WEEKS + 1, JOBS)
    return sorted(folder.iterdir())


def test_dumps_overlap(dumps):
    """Jobs that run over the border, requeues over it, and records that two dumps have."""
    read = [[line.split("|") for line in dump.read_text().splitlines()[1:]] for dump in dumps]
    columns = weeks.HEADER.split("|")
    job, state, start = (columns.index(name) for name in ("JobIDRaw", "State", "Start"))
    seen_again = [
        (before[state], after[state], before[start] == after[start])
        for one, other in pairwise(read)
        for before in one
        for after in other
        if before[job] == after[job]
    ]
    assert ("RUNNING", "COMPLETED", True) in seen_again
    assert {first for first, _, same_run in seen_again if not same_run} & {"REQUEUED", "PREEMPTED"}
    assert any(row[state] == "RUNNING" for dump in read for row in dump)


def test_a_week_more_gives_the_bytes_of_all_at_once(checkout, dumps):
    folder = checkout.folder / "dumps"
    folder.mkdir()
    for dump in dumps[:-1]:
        (folder / dump.name).write_bytes(dump.read_bytes())
    checkout.snakemake(one_process=True, **CONFIG)
    before = kept_by(checkout)
    page = (checkout.folder / "results/studies/mine/report/index.html").read_text(encoding="utf-8")
    assert f"What changed with <bdi>{dumps[-2].name}</bdi>" in page

    (folder / dumps[-1].name).write_bytes(dumps[-1].read_bytes())
    done = checkout.snakemake(one_process=True, **CONFIG)
    assert f"ingest_part: {dumps[-1].name}" in done.stderr
    assert done.stderr.count("ingest_part: ") == 1
    page = (checkout.folder / "results/studies/mine/report/index.html").read_text(encoding="utf-8")
    assert f"What changed with <bdi>{dumps[-1].name}</bdi>" in page
    after = kept_by(checkout)
    # Of the dumps only those whose jobs the new one tells of were looked at again.
    derived = {place for place in after if place.startswith("derive_attempts/")}
    assert len(derived) == WEEKS + 1
    assert sum(after[place] != before.get(place) for place in derived) < 6
    # Models of earlier windows are as they were.
    trained = {place for place in after if place.startswith("train_model/")}
    assert len(trained & before.keys()) > len(trained) / 2

    hashes = checkout.hashes()
    (checkout.folder / "results").rename(checkout.folder / "in_steps")
    (checkout.folder / ".snakemake/kept").rename(checkout.folder / "kept_in_steps")
    checkout.snakemake(one_process=True, **CONFIG)
    assert checkout.hashes() == hashes
