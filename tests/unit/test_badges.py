"""The badges of the README agree with the project's files."""

import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
BADGES = runpy.run_path(str(ROOT / "docs" / "badges.py"))
FACTS = BADGES["facts"]()


@pytest.mark.parametrize("name", FACTS)
def test_each_badge_is_up_to_date(name):
    svg = BADGES["badge"](*FACTS[name])
    assert (ROOT / "docs" / "gallery" / f"{name}.svg").read_text(encoding="utf-8") == svg, "make gallery"


def test_the_readme_shows_each_badge():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"docs/gallery/{name}.svg" in readme for name in FACTS)


def test_the_docs_count_the_published_numbers():
    (_, count) = FACTS["claims"]
    assert f"{count} published numbers" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"has {count} numbers" in (ROOT / "docs/scorecard.md").read_text(encoding="utf-8")


def test_badge_text_is_escaped():
    svg = ElementTree.fromstring(BADGES["badge"]('<a & "b">', ">= 3"))
    assert svg.attrib["aria-label"] == '<a & "b">: >= 3'
