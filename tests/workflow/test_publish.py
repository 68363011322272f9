"""Published outputs: Snakemake's own report, the site for a static host, the archive for a repository."""

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
import zipfile
import zlib
from html.parser import HTMLParser
from itertools import zip_longest

import acceptance
import polars as pl
import pytest
import recognisable_trace
from study_runs import OWN, PAGE, ROOT, SMALL, Checkout, check_out, environment, ttf_command, write_quarto
from ttf.engine.provenance import seal
from ttf.engine.provenance.key import KEY
from ttf.page.render.render import render, renderer_version

PUBLISH = {"date": "2025-01-31"}


def test_snakemake_report_has_the_tables_and_charts_by_theme(study):
    study.snakemake("--report", "logs/snakemake-report.html", **SMALL)
    page = (study.folder / "logs/snakemake-report.html").read_text()
    results = json.loads(re.search(r"var results = (\{.*?\});?\n", page)[1])
    categories = json.loads(re.search(r"var categories = (\{.*?\});?\n", page)[1])
    charts = {name for name, result in results.items() if result["mime_type"] == "image/svg+xml"}
    svg_names = {str(path.relative_to(study.folder)) for path in study.folder.glob("results/*/figures/*.svg")}
    assert charts == {name for name in svg_names if not name.endswith(".narrow.svg")}
    assert {f"{OWN}/scorecard.csv", "results/sample/tables/mttf.csv"} <= results.keys()
    assert all(result["labels"]["trace"] in ("sample", "all") for result in results.values())
    assert all(
        "synthetic" in result["caption"] for name, result in results.items() if name.startswith("results/sample/")
    )
    assert {"Data quality", "Outcomes", "Time to failure", "Published findings"} <= categories.keys()
    assert str(study.folder) not in page
    assert 'href=\\"../results/studies/sample/report/index.html\\"' in page


def test_another_renderer_renders_pages_and_site_again(published, monkeypatch, tmp_path):
    """Its version is a parameter of these rules, not its folder."""
    monkeypatch.setenv("PATH", write_quarto(tmp_path / "one"))
    planned = published.planned("publish_site", **SMALL, publish=PUBLISH)
    assert planned == {"render_page", "write_manifest", "publish_site"}
    name = renderer_version()
    monkeypatch.setenv("PATH", write_quarto(tmp_path / "two"))
    assert renderer_version() == name
    monkeypatch.setenv("PATH", write_quarto(tmp_path / "two", "1.10.19"))
    assert renderer_version() != name


class Elements(HTMLParser):
    """Tags, attributes and texts of a page, normalised, because Quarto parses and rewrites the page."""

    _WITHOUT_END = frozenset(["br", "col", "hr", "img", "input", "link", "meta", "wbr"])
    # HTML implies this element even if it is not written.
    _IMPLIED = "tbody"

    def __init__(self, html: str) -> None:
        super().__init__()
        self.all: list[tuple] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag != self._IMPLIED:
            self.all.append((tag, sorted((name, value or "") for name, value in attrs)))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self._WITHOUT_END:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag != self._IMPLIED:
            self.all.append((f"/{tag}",))

    def handle_data(self, data):
        if text := " ".join(data.split()):
            self.all.append((text,))

    def handle_decl(self, decl):
        self.all.append((decl,))


@pytest.mark.usefixtures("real_quarto")
def test_quarto_gives_the_elements_that_pandoc_gives(published, tmp_path):
    source = published.folder / f"{OWN}/report/source"
    differences = {}
    for page in sorted(source.glob("*.qmd")):
        name = render(page, tmp_path / "page.html")
        assert name.startswith("Quarto ")
        quarto_page = (tmp_path / "page.html").read_text(encoding="utf-8").replace(name, "Pandoc 3.9")
        pandoc_page = (published.folder / f"{OWN}/report/{page.stem}.html").read_text(encoding="utf-8")
        pairs = zip_longest(Elements(quarto_page).all, Elements(pandoc_page).all)
        differences[page.stem] = next((pair for pair in pairs if pair[0] != pair[1]), None)
    assert differences == {"index": None}


@pytest.fixture(scope="module")
def published(finished_study, tmp_path_factory):
    """Return a copy of the finished study with its site and archive."""
    copy = Checkout(tmp_path_factory.mktemp("published") / "checkout")
    shutil.copytree(finished_study.folder, copy.folder, symlinks=True)
    (copy.folder / "locks").mkdir()
    for name in ("CITATION.cff", "LICENSE", "locks/study.lock", "pyproject.toml"):
        shutil.copy2(ROOT / name, copy.folder / name)
    # One run renders the PDF and publishes the manifest that lists it.
    targets = ("publish_site", "archive_results", "export_figures")
    copy.snakemake("--", *targets, one_process=True, **SMALL, publish=PUBLISH)
    return copy


def test_every_link_of_the_site_resolves_and_every_file_is_linked(published):
    site = published.folder / f"{OWN}/site"
    index = (site / "files.html").read_text()
    linked = set(re.findall(r'href="([^"]+)"', index))
    files = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    assert files - linked == {".nojekyll", ".snakemake_timestamp", "checksums.json"}
    for page in site.glob("*.html"):
        html = re.sub(r"<(script|style)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
        links = set(re.findall(r'href="(?!https:|mailto:|data:)([^"]+)"', html))
        assert {link.partition("#")[0] for link in links} - {""} <= files, page.name
        anchors = {link[1:] for link in links if link.startswith("#")}
        assert anchors <= set(re.findall(r'\bid="([^"]+)"', html)), page.name
    assert {"index.html", "files.html", "dictionary.csv", "report.pdf", "README.md"} <= linked
    charts = {path.name.split(".")[0] for path in site.glob("sample/figures/*.svg")}
    for kind in ("vl.json", "png", "pdf"):
        assert charts == {path.name.split(".")[0] for path in site.glob(f"sample/figures/*.{kind}")}
    tables = published.folder.glob("results/sample/tables/*.csv")
    assert {path.name for path in tables} == {path.name for path in site.glob("sample/tables/*.csv")}
    assert not list(site.rglob("*.parquet"))
    assert "Synthetic" in index
    assert "Synthetic" in (site / "README.md").read_text()
    assert not [
        path for path in site.rglob("*") if path.is_file() and str(published.folder) in path.read_text("latin-1")
    ]


@pytest.fixture(scope="module")
def browser():
    if not acceptance.CHROMIUM:
        pytest.skip("chromium is not installed: make test-tools")
    with acceptance.browsing() as browser:
        yield browser


def test_every_page_of_the_site_is_accepted(published, browser):
    """But the report, which test_report_in_browser.py has."""
    pages = [page for page in (published.folder / f"{OWN}/site").glob("*.html") if page.stem != "index"]
    faults_by_page = {page.stem: acceptance.faults_of_other_page(browser, page) for page in pages}
    assert faults_by_page == {"files": []}


def contents_of_archive(study) -> dict[str, bytes]:
    with tarfile.open(study.folder / f"{OWN}/archive/time-to-failure-results.tar.xz") as tar:
        members = tar.getmembers()
        assert {member.name.split("/")[0] for member in members} == {"time-to-failure-results"}
        return {member.name.split("/", 1)[1]: tar.extractfile(member).read() for member in members}


def test_each_chart_with_data_is_a_pdf_and_an_svg_for_papers(published):
    figures = published.folder / f"{OWN}/figures"
    index = json.loads((published.folder / "results/sample/figures/index.json").read_text())
    drawn = {name for name, texts in index.items() if texts["empty"] is None}
    for kind in ("pdf", "svg"):
        assert {path.stem for path in figures.glob(f"sample/*.{kind}")} == drawn
    captions = (figures / "captions.txt").read_text().split("\n\n")
    assert {line.partition(":")[0] for line in captions} == {f"sample/{name}" for name in drawn}
    site, archive = published.folder / f"{OWN}/site/sample/figures", contents_of_archive(published)
    for picture in figures.glob("sample/*"):
        assert picture.read_bytes() == (site / picture.name).read_bytes()
        assert picture.read_bytes() == archive[f"results/sample/figures/{picture.name}"]


def test_the_archive_is_the_same_bytes_again(published):
    archive = published.folder / f"{OWN}/archive/time-to-failure-results.tar.xz"
    content = archive.read_bytes()
    options = ("--forcerun", "archive_results", "--", "archive_results")
    published.snakemake(*options, one_process=True, **SMALL, publish=PUBLISH)
    assert archive.read_bytes() == content


def test_the_archive_holds_results_workflow_and_environment(published):
    files = contents_of_archive(published)
    assert {"LICENSE", "CITATION.cff", "environment.yml", "locks/study.lock", "workflow/Snakefile"} <= files.keys()
    assert {f"{OWN}/config.yaml", PAGE, "results/sample/metrics.json"} <= files.keys()
    assert f"{OWN}/report/report.pdf" in json.loads(files[f"{OWN}/manifest.json"])["products"]
    for name in (f"{OWN}/scorecard.csv", "results/sample/tables/mttf.csv", "results/sample/figures/still_running.svg"):
        assert files[name] == (published.folder / name).read_bytes()
    assert not [name for name, content in files.items() if str(published.folder).encode() in content]


def test_the_archive_has_the_metrics_that_make_metrics_writes(published):
    (published.folder / "rules.yaml").write_text("rules: [{number: data.jobs, above: 1}]")
    command = ttf_command(published.folder, "metrics", "--rules=rules.yaml")
    subprocess.run(command, cwd=published.folder, env=environment(), capture_output=True, check=True)
    name = f"{OWN}/monitoring/time_to_failure.prom"
    assert contents_of_archive(published)[name] == (published.folder / name).read_bytes()


def test_the_crate_has_what_the_specification_requires(published):
    """Test each MUST of RO-Crate 1.1 and of Workflow RO-Crate 1.0."""
    files = contents_of_archive(published)
    crate = json.loads(files["ro-crate-metadata.json"].decode("utf-8"))
    assert crate.keys() == {"@context", "@graph"}
    assert crate["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    graph = {entity["@id"]: entity for entity in crate["@graph"]}
    assert len(graph) == len(crate["@graph"])
    assert all(entity["@type"] for entity in graph.values())
    # Flattened: an entity holds only texts and references, and each reference resolves.
    for entity in graph.values():
        for value in (item for held in entity.values() for item in (held if isinstance(held, list) else [held])):
            assert isinstance(value, str) or value.keys() == {"@id"}
            assert isinstance(value, str) or value["@id"] in graph or value["@id"].startswith("https://")
            assert value != ""

    descriptor, root = graph["ro-crate-metadata.json"], graph["./"]
    assert (descriptor["@type"], descriptor["about"]) == ("CreativeWork", {"@id": "./"})
    profiles = [entity["@id"] for entity in descriptor["conformsTo"]]
    assert profiles == ["https://w3id.org/ro/crate/1.1", "https://w3id.org/workflowhub/workflow-ro-crate/1.0"]
    assert root["@type"] == "Dataset"
    assert root["name"] and root["description"]
    assert root["datePublished"] == "2025-01-31"
    license_ = graph[root["license"]["@id"]]
    assert license_["name"] and license_["description"]

    parts = {entity["@id"] for entity in root["hasPart"]}
    assert parts == files.keys() - {"ro-crate-metadata.json", "checksums.json"}
    for name in parts:
        entity = graph[name]
        assert "File" in entity["@type"]
        assert entity["contentSize"] == str(len(files[name]))
        assert entity["sha256"] == hashlib.sha256(files[name]).hexdigest()
        assert re.fullmatch(r"[a-z]+/[a-z0-9.+-]+", entity["encodingFormat"])
        assert "SoftwareSourceCode" not in entity["@type"] or entity["name"]

    workflow = graph[root["mainEntity"]["@id"]]
    assert {"File", "SoftwareSourceCode", "ComputationalWorkflow"} <= set(workflow["@type"])
    assert workflow["@id"] in parts and workflow["name"]
    language = graph[workflow["programmingLanguage"]["@id"]]
    assert language["@type"] == "ComputerLanguage"
    assert language["name"] and language["url"] and language["version"]
    assert all(graph[entity["@id"]]["name"] for entity in [root["author"]])
    assert graph["#trace-sample"]["description"].startswith("Synthetic")


# Names ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named_study(tmp_path_factory):
    """Return content by path of site and archive of a trace with random names, the names, and its folder."""
    study = check_out(tmp_path_factory.mktemp("named") / "checkout")
    entry, names = recognisable_trace.write(study.folder / "raw")
    config = {"study": ["mine"], "registry": {"mine": entry}, "publish": PUBLISH}
    study.snakemake("--", "publish_site", "archive_results", one_process=True, **config)
    study_folder = study.folder / "results/studies/mine"
    site = {
        f"site/{path.relative_to(study_folder / 'site')}": path
        for path in (study_folder / "site").rglob("*")
        if path.is_file()
    }
    with tarfile.open(study_folder / "archive/time-to-failure-results.tar.xz") as tar:
        tar.extractall(study_folder / "unpacked", filter="data")
    archive = {
        str(path.relative_to(study_folder)): path for path in (study_folder / "unpacked").rglob("*") if path.is_file()
    }
    return {name: path.read_bytes() for name, path in (site | archive).items()}, names, study.folder


def layers(content: bytes, max_depth: int = 4):
    """Yield the bytes and all packed layers: Base64, zlib, PDF streams, workbooks, Parquet."""
    yield content
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            yield from map(packed.read, packed.namelist())
    if content.startswith(b"PAR1"):
        yield pl.read_parquet(content).write_csv().encode()
    if max_depth and len(content) > 64:
        # Other data may look like Base64, but with a length that no Base64 has.
        texts = [text[: len(text) - (len(text) % 4 == 1)] for text in re.findall(rb"[A-Za-z0-9+/]{64,}", content)]
        packed = [base64.b64decode(text + b"=" * (-len(text) % 4)) for text in texts]
        packed += [content[match.end() :] for match in re.finditer(rb"stream\r?\n", content)]
        for unpacked in packed:
            yield unpacked
            for bits in (15, -15, 31):
                try:
                    yield from layers(zlib.decompressobj(bits).decompress(unpacked), max_depth - 1)
                except zlib.error:
                    continue


def test_no_user_account_node_file_or_reason_is_named_in_any_published_byte(named_study):
    files, names, folder = named_study
    secret = [(folder / KEY).read_bytes(), *map(str.encode, (*names, str(folder)))]
    pattern = re.compile(b"|".join(map(re.escape, secret)))
    assert pattern.search((folder / "results/mine/tables/failures_by_owner.csv").read_bytes())
    leaking_files = {name for name, content in files.items() for layer in layers(content) if pattern.search(layer)}
    assert leaking_files == set()
    assert not [name for name in files if any(secret in name for secret in names)]


def test_pages_charts_numbers_and_tables_have_one_pseudonym_for_one_name(named_study):
    files, _, _ = named_study
    owners = files["site/mine/tables/failures_by_owner.csv"].decode()
    users = set(re.findall(r"user-[0-9a-f]{12}", owners))
    assert users
    page = files["site/index.html"].decode()
    assert "<b>Pseudonyms.</b>" in page
    nodes = set(re.findall(r"node-[0-9a-f]{12}", files["site/mine/tables/drain_list.csv"].decode()))
    assert nodes & set(re.findall(r"node-[0-9a-f]{12}", files["site/mine/metrics.json"].decode()))
    assert nodes & set(re.findall(r"node-[0-9a-f]{12}", page))


def test_what_is_published_can_be_verified_by_itself(named_study):
    _, _, folder = named_study
    study_folder = folder / "results/studies/mine"
    assert (
        seal.find_problems(study_folder / "site")
        == seal.find_problems(study_folder / "unpacked/time-to-failure-results")
        == []
    )
    (study_folder / "site/mine/tables/mttf.csv").write_text("")
    assert len(seal.find_problems(study_folder / "site")) == 1
