"""What the start of a workflow that fetches this one takes for granted (workflow/Snakefile, tests/module)."""

import subprocess

import yaml
from study.publication import SOURCES
from study_runs import ROOT


def test_every_file_is_text_that_ends_with_one_line_break():
    """What git shows comes without the last line break, which the bootstrap puts back."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--", *SOURCES], capture_output=True, text=True)
    for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.splitlines()):
        content = (ROOT / name).read_bytes()
        assert content == (content and content.rstrip(b"\n") + b"\n"), name
        content.decode("utf-8")


def test_the_catalog_finds_what_it_asks_for():
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
