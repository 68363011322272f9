"""The programs of .pre-commit-config.yaml, which `make lint` runs, are those of the lock."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_every_hook_runs_a_program_of_the_lock():
    lock = (ROOT / "requirements-test.lock").read_text(encoding="utf-8")
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    programs = {hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in repository["hooks"]}
    programs = programs - {"python"} | {"mypy"}  # python runs setup/check_types.py, which runs mypy
    assert {name for name in programs if f"\n{name}==" not in f"\n{lock}"} == set()
    assert {hook["language"] for hook in repository["hooks"]} == {"unsupported"}
