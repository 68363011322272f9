"""The linters of `make lint` find nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CHECKS = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "snakefmt": ["snakefmt", "--check", "Snakefile", "workflow"],
    "snakemake --lint": ["snakemake", "--lint"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_clean(check):
    program, *arguments = CHECKS[check]
    done = subprocess.run([BIN / program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if check == "snakemake --lint":
        assert "Congratulations" in done.stderr
