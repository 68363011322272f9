"""Run the tests that ONLY names, or all of them (make test)."""

import argparse
import os
import sys
from pathlib import Path

TESTS = Path(__file__).parent
WORKERS = ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]


def find_test_files(name: str) -> list[Path]:
    """Return the folder or the files of tests with this name, below tests/ or with that folder in front."""
    path = name.removeprefix("tests/").strip("/")
    if path and (TESTS / path).is_dir() and next((TESTS / path).rglob("test_*.py"), None):
        return [TESTS / path]
    file = path.removesuffix(".py") + ".py"
    return sorted(test for test in TESTS.rglob("test_*.py") if f"/{test.relative_to(TESTS)}".endswith(f"/{file}"))


def pytest_arguments(only: str) -> list[str]:
    """Return the arguments of pytest for a folder, a file, or else an expression of -k; for all tests where blank."""
    files = find_test_files(only)
    chosen = [os.path.relpath(path) for path in files] or ([f"-k={only}"] if only else [])
    # Workers take seconds to start; one file needs only one.
    is_one_file = len(files) == 1 and files[0].is_file()
    return chosen if is_one_file else [*WORKERS, *chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *pytest_arguments(only)])


if __name__ == "__main__":
    main()
