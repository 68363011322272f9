"""Requirements of a workflow that fetches this one (workflow/Snakefile, tests/module)."""

import subprocess

import yaml
from study_runs import ROOT
from ttf.study.publication import SOURCES


def test_every_file_is_text_that_ends_with_one_line_break():
    """`git show` drops the last line break, and the bootstrap restores it."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--", *SOURCES], capture_output=True, text=True)
    for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.splitlines()):
        content = (ROOT / name).read_bytes()
        assert content == (content and content.rstrip(b"\n") + b"\n"), name
        content.decode("utf-8")


def test_the_files_that_the_catalog_needs_exist():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage == {"software-stack-deployment": {"conda": True}, "report": True}
    for name in (
        "workflow/Snakefile",
        "config/README.md",
        "config/config.yaml",
        "README.md",
        "LICENSE",
        "environment.yml",
    ):
        assert (ROOT / name).is_file()
