"""The programs of .pre-commit-config.yaml, which `make lint` runs, report nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
(REPOSITORY,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
HOOKS = [hook["id"] for hook in REPOSITORY["hooks"]]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git checkout, whose files pre-commit would ask for")
@pytest.mark.parametrize("hook", HOOKS)
def test_hook_passes(hook, tmp_path):
    command = [Path(sys.executable).with_name("pre-commit"), "run", hook, "--all-files", "--verbose"]
    environment = os.environ | {"PRE_COMMIT_HOME": str(tmp_path)}
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "Passed" in process.stdout
    if hook == "snakemake":
        assert "Congratulations" in process.stdout


def test_every_hook_runs_a_program_of_the_lock():
    lock = (ROOT / "requirements-test.lock").read_text(encoding="utf-8")
    programs = {hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in REPOSITORY["hooks"]}
    programs = programs - {"python"} | {"mypy"}  # python runs setup/check_types.py, which runs mypy
    assert {name for name in programs if f"\n{name}==" not in f"\n{lock}"} == set()
    assert {hook["language"] for hook in REPOSITORY["hooks"]} == {"unsupported"}
