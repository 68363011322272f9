"""The version stands in four files, its day and the address of the code in two: docs/release.md."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_version_its_day_and_the_address_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    head = re.search(r"^## (\S+) \((.*)\)$", (ROOT / "docs/CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    entry, address = (re.search(rf"^  {key} = {{(.*)}},$", readme, re.MULTILINE) for key in ("version", "url"))
    assert (address and address[1]) == cited.get("repository-code")
    assert {project["version"], str(cited["version"]), entry[1]} == {head[1]}
    assert head[2] == str(cited.get("date-released", "unreleased"))
    assert re.fullmatch(r"unreleased|\d{4}-\d{2}-\d{2}", head[2])
