"""workflow/files.txt, by which another workflow fetches this one, and what the bootstrap takes for granted."""

import importlib.util

import yaml
from study_runs import ROOT

SPEC = importlib.util.spec_from_file_location("workflow_files", ROOT / "docs/workflow_files.py")


def test_the_list_is_that_of_the_files():
    module = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(module)
    assert (ROOT / module.FILES).read_text(encoding="utf-8") == module.text(), "run: make docs"


def test_every_file_is_text_that_ends_with_one_line_break():
    """What git shows comes without the last line break, which the bootstrap puts back."""
    for name in (ROOT / "workflow/files.txt").read_text(encoding="utf-8").splitlines()[1:]:
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
