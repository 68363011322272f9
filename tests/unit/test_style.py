"""The quick programs of tools/pre-commit.yaml, which `make lint` runs, report nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git checkout, whose files pre-commit would ask for")
def test_the_quick_hooks_pass(tmp_path):
    """Types and rules take most of the time of `make lint`, which the continuous integration runs too."""
    command = [Path(sys.executable).with_name("pre-commit"), "run", "--config=tools/pre-commit.yaml", "--all-files"]
    environment = os.environ | {"PRE_COMMIT_HOME": str(tmp_path), "SKIP": "types,snakemake"}
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "Passed" in process.stdout


def test_every_hook_runs_a_program_of_the_lock():
    lock = (ROOT / "locks/test.lock").read_text(encoding="utf-8")
    (repository,) = yaml.safe_load((ROOT / "tools/pre-commit.yaml").read_text(encoding="utf-8"))["repos"]
    programs = {hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in repository["hooks"]}
    programs -= {"python"}
    assert {name for name in programs if f"\n{name}==" not in f"\n{lock}"} == set()
    assert {hook["language"] for hook in repository["hooks"]} == {"unsupported"}
