"""The site and the archive: their texts, and the same bytes for the same results."""

import io
import json
import re
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from html_pages import ParsedPage
from ttf.engine.checkout import name_workflow_file
from ttf.engine.errors import StudyError
from ttf.page.publication_record import Creator, check_date, describe
from ttf.page.publish import pages, site
from ttf.page.publish.archive import pack_tar
from ttf.page.publish.crate import make_crate
from ttf.page.publish.files import PackedFile
from ttf.page.render.pictures import render_pdf, render_png
from ttf.page.render.render import RENDER_FILES, render
from ttf.page.report.templates import macros
from ttf.study.publication import SOURCES, find_publication_date, list_source_files

ROOT = Path(__file__).parents[2]
CITATION = """
title: A study
version: 1.2.0
license: MIT
abstract: >-
  What it
  does.
authors:
  - {family-names: Doe, given-names: Jane, orcid: "https://orcid.org/0000-0002-1825-0097", affiliation: A lab}
  - {name: A group}
keywords: [reliability]
repository-code: https://example.org/code
"""
HOSTILE = "<script>window.broken=1</script>\"'&`[a](javascript:b)| \u202egnp"
TRACES = {
    "mine": {
        "title": HOSTILE,
        "source": "https://example.org/data, folder a; parts at https://example.org/<table>.gz",
        "licence": "CC BY 4.0",
        "citation": "Doe et al., DOI 10.1145/3458817.3476223.",
        "synthetic": False,
    },
    "sample": {"synthetic": True},
}
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="10" fill="#d55e00"/></svg>'
)


def record(**settings):
    return describe(CITATION, settings, TRACES)


# Words ----------------------------------------------------------------------------------------------------


def test_the_citation_file_fills_in_missing_settings():
    site_record = record()
    assert site_record.title == "A study. Results: mine, sample (synthetic)"
    assert (site_record.description, site_record.version, site_record.license) == ("What it does.", "1.2.0", "MIT")
    assert site_record.creators == [
        Creator("Doe, Jane", True, "A lab", "0000-0002-1825-0097"),
        Creator("A group", person=False),
    ]
    changed = record(title="T", creators=[{"name": "Roe, R."}, {"name": "Us"}], license="CC-BY-4.0", keywords=["k"])
    assert (changed.title, changed.license, changed.keywords) == ("T", "CC-BY-4.0", ["k"])
    assert changed.creators == [Creator("Roe, R."), Creator("Us", person=False)]


def test_the_day_of_publication_is_never_today(tmp_path):
    cff = tmp_path / "CITATION.cff"
    cff.write_text("title: A\n")
    assert find_publication_date({}, tmp_path, {}) == ""
    with pytest.raises(StudyError, match="publish: "):
        check_date("")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    dates = {"GIT_COMMITTER_DATE": "2024-03-01T23:30:00-0500", "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z"}
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run(
        [*git, "commit", "-q", "--allow-empty", "-m", "a"], check=True, env=dates | {"PATH": "/usr/bin:/bin"}
    )
    assert find_publication_date({}, tmp_path, {}) == "2024-03-02"  # in UTC
    cff.write_text("date-released: 2024-05-06\n")
    assert find_publication_date({}, tmp_path, {}) == "2024-05-06"
    assert find_publication_date({}, tmp_path, {"SOURCE_DATE_EPOCH": "86400"}) == "1970-01-02"
    assert find_publication_date({"date": "2025-01-31"}, tmp_path, {"SOURCE_DATE_EPOCH": "86400"}) == "2025-01-31"


def test_sources_are_what_git_tracks_and_no_configuration_of_the_user():
    """The names of a user's own files in config/ are not among them."""
    tracked = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {name_workflow_file(path) for path in list_source_files()}
    assert set(tracked.splitlines()) == names - {"sbom.cdx.json"}
    assert set(subprocess.check_output(["git", "ls-files", "config"], cwd=ROOT, text=True).splitlines()) <= names


# Files ----------------------------------------------------------------------------------------------------


def test_png_is_twice_as_large_and_the_same_each_time():
    png = render_png(SVG)
    assert png == render_png(SVG)
    assert struct.unpack(">II", png[16:24]) == (60, 40)


def test_a_pdf_is_the_same_each_time():
    text = '<text font-family="Liberation Sans, Arial, sans-serif" font-size="12px" y="10">95% final µs</text></svg>'
    (pdf,) = {render_pdf(SVG.replace("</svg>", text)) for _ in range(2)}
    assert pdf.startswith(b"%PDF-") and b"/FontFile" in pdf


# Site -----------------------------------------------------------------------------------------------------


def test_hostile_text_is_text_in_the_index():
    files = [
        PackedFile("mine/figures/a.svg", b"x", HOSTILE, HOSTILE),
        PackedFile("mine/tables/t.csv", b"", "t", HOSTILE),
        PackedFile("scorecard.csv", b"", "scorecard", ""),
    ]
    page = ParsedPage(site.file_index(files, record(title=HOSTILE, description=HOSTILE)))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert page.text.count(HOSTILE) == 5  # description, trace, chart twice, table
    links = ["mine/figures/a.pdf", "mine/figures/a.png", "mine/figures/a.svg", "mine/tables/t.csv", "scorecard.csv"]
    assert sorted(page.values("href", "src")) == links
    assert "Synthetic" not in page.text
    assert "<script" not in site.make_readme(record())


QMD = """---
pagetitle: "Mine"
---

```{=html}
<nav>Contents <a href="#outcomes">1</a><!-- more pages --></nav>
```
"""
PAGES = {"index": "Mine", "other": HOSTILE}


def site_texts(**settings):
    return pages.sources({"index": QMD, "other": QMD}, PAGES, record(**settings), "<p>F</p>", macros(ROOT / "report"))


def test_every_page_of_the_site_links_every_other():
    texts = site_texts()
    for page, pdf in (("index", []), ("other", ["other.pdf"])):  # the comparison is not on paper
        links = ParsedPage(texts[page]).values("href", "src")
        assert [link for link in links if not link.startswith("#")] == ["files.html", *pdf]
        assert pages.MARK not in texts[page]
    text = texts["files"]
    links = ParsedPage(text).values("href", "src")
    for link in ("index.html", "other.html", "files.html"):
        assert links.count(link) == 2, "on a desk and on a phone"
    assert text.count('aria-current="page"') == 2 and pages.MARK not in text
    assert "<p>F</p>" in text


def test_hostile_titles_and_descriptions_are_text_in_the_pages_of_the_site(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    text = site_texts(title=HOSTILE, description=HOSTILE)["files"]
    for name in RENDER_FILES:
        shutil.copy(ROOT / "report" / name, tmp_path)
    (tmp_path / "files.qmd").write_text(text, encoding="utf-8")
    front, _, body = text.partition("\n---\n")
    yaml.safe_load(front)
    assert "<script>window" not in body
    assert ParsedPage(body).text.count(HOSTILE) >= 2, "in both lists of contents"
    assert "<script" not in front
    render(tmp_path / "files.qmd", tmp_path / "made.html")
    made = ParsedPage((tmp_path / "made.html").read_text(encoding="utf-8"))
    assert ("meta", {"name": "description", "content": f"Files. {HOSTILE}"}) in made.attributes


# Archive --------------------------------------------------------------------------------------------------


def test_the_archive_depends_on_content_alone():
    files = [PackedFile("b/c.csv", b"1", "", ""), PackedFile("a.md", b"23", "", "")]
    packed = pack_tar(files, "study", "2025-01-31")
    assert packed == pack_tar(reversed(files), "study", "2025-01-31")
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        members = tar.getmembers()
    assert [member.name for member in members] == ["study/a.md", "study/b/c.csv"]
    assert {(m.mtime, m.uid, m.gid, m.uname, m.mode) for m in members} == {(1738281600, 0, 0, "", 0o644)}


def test_crate_names_creators_citations_and_hostile_traces():
    files = [PackedFile("workflow/Snakefile", b"", "Snakefile", ""), PackedFile("results/a b%.csv", b"1", "a", "")]
    graph = {entity["@id"]: entity for entity in json.loads(make_crate(files, record(), "2025-01-31", "9.1"))["@graph"]}
    root = graph["./"]
    assert root["hasPart"] == [{"@id": "workflow/Snakefile"}, {"@id": "results/a%20b%25.csv"}]
    assert root["creator"] == [{"@id": "https://orcid.org/0000-0002-1825-0097"}, {"@id": "#creator-2"}]
    assert [graph[entity["@id"]]["@type"] for entity in root["creator"]] == ["Person", "Organization"]
    assert graph["#trace-mine"]["name"] == f"mine: {HOSTILE}"
    assert graph["#trace-sample"]["description"].startswith("Synthetic")
    assert graph[root["citation"]["@id"]]["name"].startswith("Doe et al.")
    assert graph["workflow/Snakefile"]["url"] == "https://example.org/code"
    with_doi = json.loads(make_crate(files, record(doi="10.5281/zenodo.1"), "2025-01-31", "9.1"))["@graph"]
    assert [entity["identifier"] for entity in with_doi if entity["@id"] == "./"] == [
        "https://doi.org/10.5281/zenodo.1"
    ]


# Actions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["test.yml", "publish.yml"])
def test_actions_are_official_pinned_and_may_do_little(file):
    text = (ROOT / ".github/workflows" / file).read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert set(job["permissions"]) <= ({"pages", "id-token"} if "environment" in job else {"contents"})
        for step in job["steps"]:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/none@v0"))
            # What somebody typed reaches a shell through the environment alone.
            assert "${{" not in step.get("run", "")
            for target in re.findall(r"\bmake ([a-z-]+)", step.get("run", "")):
                assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
