"""Fixtures: a copy of the checkout, and the finished study of a small sample."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import common_code  # noqa: F401 (before what imports NumPy)
import hypothesis
import pytest
from study_runs import SHARED_DATA, SLURM, SMALL, Checkout, check_out, copy_study, hide_quarto
from whole_study import load_claims_once

# Render pages with Pandoc on every machine.
hide_quarto()

# The same examples every time, so that one commit has one verdict. New ones: HYPOTHESIS_PROFILE=explore make test
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=25)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(optionalhook=True)  # the environment of the tests with a store has no xdist
def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are cores: some tests wait for a server, a browser or a lock."""
    return (os.cpu_count() or 1) + 1


# The files of tests that take longest, in this order; a worker that starts one of them last would end long after the
# others.
LONGEST = [
    "test_publish",
    "test_reruns",
    "test_score",
    "test_studies",
    "test_size_units",
    "test_monday",
    "test_extremes",
    "test_afternoons",
    "test_report_in_browser",
    "test_what_changed",
    "test_own_analyses",
    "test_rules",
    "test_every_format",
    "test_windowed_models",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files of the whole workflow, then the other tests of it."""

    def rank(item: pytest.Item) -> tuple[bool, int]:
        is_long = item.path.stem in LONGEST
        return item.path.parent.name != "workflow", LONGEST.index(item.path.stem) if is_long else len(LONGEST)

    items.sort(key=rank)


@pytest.fixture(scope="session", autouse=True)
def claims_read_once() -> Iterator[None]:
    with patch("study.study.load_claims", load_claims_once):
        yield


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    """Return a fresh copy of the workflow in which nothing has run."""
    return check_out(tmp_path / "checkout")


def finish_once(tmp_path_factory, worker_id: str, name: str, config: dict) -> Checkout:
    """Return a copy of the study with this configuration, run once for all of pytest's workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            building = check_out(tmp_path_factory.mktemp("building") / "checkout")
            building.snakemake(one_process=True, **config)
            building.folder.rename(folder)
    # Each worker needs a copy: even a dry run writes a log.
    return copy_study(Checkout(folder), tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory, worker_id) -> Checkout:
    """Return the study of a small sample with its report. Tests must not change it: see `study`."""
    return finish_once(tmp_path_factory, worker_id, "finished_study", SMALL)


@pytest.fixture(scope="session")
def finished_slurm(tmp_path_factory, worker_id) -> Checkout:
    """Return the study of the Slurm sample with its report, for the size of its largest runs; not to be changed."""
    return finish_once(tmp_path_factory, worker_id, "finished_slurm", SLURM)


@pytest.fixture
def study(finished_study, tmp_path) -> Checkout:
    """Return a copy of the finished study to edit and run again."""
    return copy_study(finished_study, tmp_path)


@pytest.fixture(scope="module")
def study_of_module(finished_study, tmp_path_factory) -> Checkout:
    """Return a copy of the finished study for all tests of a file, which must restore their changes."""
    return copy_study(finished_study, tmp_path_factory.mktemp("module"))


@pytest.fixture(scope="module")
def browser():
    from acceptance import browsing  # with libraries that the environments of clusters lack

    with browsing() as browser:
        yield browser


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data are not beside the checkout")
    return SHARED_DATA


@pytest.fixture
def real_quarto(monkeypatch) -> None:
    """Restore Quarto on the PATH, which hide_quarto() removed."""
    if "REAL_QUARTO" not in os.environ:
        pytest.skip("Quarto was not on the PATH when the tests started")
    folder = Path(os.environ["REAL_QUARTO"]).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("quarto"), os.environ["REAL_QUARTO"]
