"""A workflow that uses this one as a module."""

import subprocess
import sys
from pathlib import Path

from study_runs import ROOT, SMALL, TASKS, pack_tasks


def committed(folder: Path) -> Path:
    """A repository with the files of this checkout, as they lie here, in one commit with the tag v1."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True).stdout
    for name in [name for name in listed.splitlines() if (ROOT / name).is_file()]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    pack_tasks(folder, TASKS)
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *author, *words], check=True)

    git("init", "-q")
    git("add", "--all")
    # As at a release.
    subprocess.run([sys.executable, folder / "docs/workflow_files.py"], check=True)
    git("commit", "-q", "--all", "-m", "all")
    git("tag", "v1")
    return folder


def user(folder: Path, snakefile: str) -> Path:
    """The folder of a workflow that has this Snakefile."""
    (folder / "workflow").mkdir(parents=True)
    (folder / "workflow/Snakefile").write_text(snakefile, encoding="utf-8")
    return folder


def using(repository: Path, *lines: str) -> str:
    """A Snakefile with the study as the module ttf, its rules named ttf_*; lines: of the module."""
    config = {key: SMALL[key] for key in ("study", "registry")}
    return f"""
module ttf:
    snakefile:
        gitfile("{repository}", path="workflow/Snakefile", tag="v1")
{chr(10).join(lines or [f"    config: {config}"])}


use rule * from ttf as ttf_*


rule mine:
    default_target: True
    input:
        rules.ttf_all.input,
"""
