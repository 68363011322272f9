"""Fixtures: a copy of the checkout, and a finished study of a small sample."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import hypothesis
import pytest
from study_runs import SHARED_DATA, SMALL, Checkout, check_out, copied, hide_quarto
from ttf.engine.process.entry import take_common_code
from whole_study import load_claims_once

# The digits of a study, whatever the processor.
take_common_code()
# Its pages by Pandoc, whatever the machine.
hide_quarto()

# The same examples every time, so that one commit has one verdict. New ones: HYPOTHESIS_PROFILE=explore make test
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(optionalhook=True)  # the environment of the tests with a store has no xdist
def pytest_xdist_auto_num_workers() -> int:
    """Of -n auto: one more than there are cores, as some wait for a server, a browser or a lock."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session", autouse=True)
def claims_read_once() -> Iterator[None]:
    with patch("study.study.load_claims", load_claims_once):
        yield


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    """A fresh copy of the workflow, nothing run in it yet."""
    return check_out(tmp_path / "checkout")


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory, worker_id) -> Checkout:
    """The study of a small sample, run to the report, once for all of pytest's workers.

    Not to be changed: see `study`.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "finished_study"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            building = check_out(tmp_path_factory.mktemp("building") / "checkout")
            building.snakemake(one_process=True, **SMALL)
            building.folder.rename(folder)
    # One of this worker's own: even a dry run writes a log.
    return copied(Checkout(folder), tmp_path_factory.mktemp("finished"))


@pytest.fixture
def study(finished_study, tmp_path) -> Checkout:
    """A copy of the finished study to edit and run again."""
    return copied(finished_study, tmp_path)


@pytest.fixture(scope="module")
def study_of_module(finished_study, tmp_path_factory) -> Checkout:
    """A copy of the finished study for all tests of a file, each of which leaves it as it was."""
    return copied(finished_study, tmp_path_factory.mktemp("module"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data are not beside the checkout")
    return SHARED_DATA


@pytest.fixture
def real_quarto(monkeypatch) -> None:
    """Quarto on the PATH, where it was when the tests started."""
    if "REAL_QUARTO" not in os.environ:
        pytest.skip("Quarto was not on the PATH when the tests started")
    folder = Path(os.environ["REAL_QUARTO"]).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("quarto"), os.environ["REAL_QUARTO"]
