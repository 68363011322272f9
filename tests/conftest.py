"""Fixtures: a copy of the checkout, and a finished study of a small sample."""

import os
import shutil
from pathlib import Path

import hypothesis
import pytest
from study_runs import SHARED_DATA, SMALL, Checkout, check_out

# The same examples every time, so that one commit has one verdict. New ones: HYPOTHESIS_PROFILE=explore make test
hypothesis.settings.register_profile("repeatable", derandomize=True)
hypothesis.settings.register_profile("explore")
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    """A fresh copy of the workflow, nothing run in it yet."""
    return check_out(tmp_path / "checkout")


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory) -> Checkout:
    """The study of a small sample, run to the report. Not to be changed: see `study`."""
    done = check_out(tmp_path_factory.mktemp("finished") / "checkout")
    done.snakemake(**SMALL)
    return done


@pytest.fixture
def study(finished_study, tmp_path) -> Checkout:
    """A copy of the finished study, with its dates, to edit and run again."""
    copy = tmp_path / "checkout"
    shutil.copytree(finished_study.folder, copy, symlinks=True)
    return Checkout(copy)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data are not beside the checkout")
    return SHARED_DATA
