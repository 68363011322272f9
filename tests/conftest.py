"""Fixtures: a copy of the checkout, and the finished study of a small sample."""

import atexit
import gc
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import common_code  # noqa: F401 (before what imports NumPy)
import hypothesis
import pytest
from study_runs import SHARED, SHARED_DATA, SLURM, SMALL, Checkout, check_out, copy_study, hide_quarto, make_once

# While modules are imported and tests listed nothing is garbage; to look for some takes a fifth of that time.
gc.disable()

# Render pages with Pandoc on every machine.
hide_quarto()

# The same examples every time, so that one commit has one verdict. New ones: HYPOTHESIS_PROFILE=explore make test
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=15)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(optionalhook=True)  # the environment of the tests with a store has no xdist
def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are cores: some tests wait for a server, a browser or a lock."""
    return (os.cpu_count() or 1) + 1


# The files of tests that take longest, in this order; a worker that starts one of them last would end long after the
# others. The first three need no study that another of them makes.
LONGEST = [
    "test_publish",
    "test_samples",
    "test_researcher",
    "test_afternoons",
    "test_extremes",
    "test_reruns",
    "test_monday",
    "test_score",
    "test_own_analyses",
    "test_docs",
    "test_size_units",
    "test_studies",
    "test_report_in_browser",
    "test_what_changed",
    "test_every_format",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, then the other tests of the whole workflow."""

    def rank(item: pytest.Item) -> tuple[int, bool]:
        is_long = item.path.stem in LONGEST
        return LONGEST.index(item.path.stem) if is_long else len(LONGEST), item.path.parent.name != "workflow"

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)  # DuckDB reports what is left at the end


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of the ten slowest files by phase; a fixture counts where it is first used."""
    seconds_by_file: dict[str, Counter] = defaultdict(Counter)
    reports = [report for group in terminalreporter.stats.values() for report in group]
    for report in reports:
        if isinstance(report, pytest.TestReport):
            for file in (report.nodeid.partition("::")[0], "all files"):
                seconds_by_file[file] += Counter({"all": report.duration, report.when: report.duration})
    if len(seconds_by_file) > 2:
        phases = ("all", "setup", "call", "teardown")
        terminalreporter.section("slowest files")
        terminalreporter.line("".join(f"{phase:>9}" for phase in phases) + "  (seconds)")
        for file in sorted(seconds_by_file, key=lambda file: -seconds_by_file[file]["all"])[:11]:
            terminalreporter.line("".join(f"{seconds_by_file[file][phase]:9.1f}" for phase in phases) + f"  {file}")


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    """Return a fresh copy of the workflow in which nothing has run."""
    return check_out(tmp_path / "checkout")


@pytest.fixture(scope="session", autouse=True)
def shared_folder(tmp_path_factory) -> None:
    base = tmp_path_factory.getbasetemp()
    SHARED[:] = [base.parent if "PYTEST_XDIST_WORKER" in os.environ else base]


def finish_once(tmp_path_factory, name: str, config: dict) -> Checkout:
    """Return a copy of the study with this configuration, run once for all of pytest's workers."""
    folder = make_once(name, lambda folder: check_out(folder).snakemake(one_process=True, **config))
    # Each worker needs a copy: even a dry run writes a log.
    return copy_study(Checkout(folder), tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory) -> Checkout:
    """Return the study of a small sample with its report. Tests must not change it: see `study`."""
    return finish_once(tmp_path_factory, "finished_study", SMALL)


@pytest.fixture(scope="session")
def finished_slurm(tmp_path_factory) -> Checkout:
    """Return the study of the Slurm sample with its report, for the size of its largest runs; not to be changed."""
    return finish_once(tmp_path_factory, "finished_slurm", SLURM)


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
def find_stranger(shared_data) -> Callable[[str], Path]:
    """Return a function from a path below strangers/ to the file or folder."""

    def find(name: str) -> Path:
        path = shared_data / "strangers" / name
        if not path.exists():
            pytest.skip(f"{name} is not among the strangers' inputs")
        return path

    return find


@pytest.fixture
def real_quarto(monkeypatch) -> None:
    """Restore Quarto on the PATH, which hide_quarto() removed."""
    if "REAL_QUARTO" not in os.environ:
        pytest.skip("Quarto was not on the PATH when the tests started")
    folder = Path(os.environ["REAL_QUARTO"]).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("quarto"), os.environ["REAL_QUARTO"]
