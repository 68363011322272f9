"""Build a workflow that uses this one as a module."""

import subprocess
from pathlib import Path

from study_runs import ROOT, SMALL, TASKS, pack_tasks


def commit_checkout(folder: Path) -> Path:
    """Create a repository with the current files of this checkout in one commit tagged v1."""
    tracked_files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in [name for name in tracked_files.splitlines() if (ROOT / name).is_file()]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    pack_tasks(folder, TASKS)
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(folder), *author, *arguments], check=True)

    git("init", "-q")
    git("add", "--all")
    git("commit", "-q", "--all", "-m", "all")
    git("tag", "v1")
    return folder


def write_workflow(folder: Path, snakefile: str) -> Path:
    (folder / "workflow").mkdir(parents=True)
    (folder / "workflow/Snakefile").write_text(snakefile, encoding="utf-8")
    return folder


def module_snakefile(repository: Path, *lines: str) -> str:
    """Return a Snakefile with the study as the module ttf; `lines` are options of the module."""
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
