"""The numbers of a finished study of several traces and of earlier results."""

import hashlib
import json
from pathlib import Path

import pytest
from ttf.engine.errors import StudyError
from ttf.engine.provenance.seal import seal_json
from ttf.study.finished import read_numbers, read_results, read_subject

NUMBER = {"value": 1, "unit": "jobs", "n": None, "source": "tables/outcomes.csv"}
STUDY_FOLDER = "results/studies/two"
FILES = ("results/a/metrics.json", "results/b/metrics.json")


@pytest.fixture
def folder(tmp_path) -> Path:
    """The study `two` of the traces a and b, and a trace c of another study."""
    for file in (*FILES, "results/c/metrics.json"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(json.dumps({"data.jobs": NUMBER, f"of.{Path(file).parent.name}": NUMBER}))
    (tmp_path / STUDY_FOLDER).mkdir(parents=True)
    write_manifest(tmp_path)
    return tmp_path


def write_manifest(folder: Path, **overrides) -> None:
    job = {"rule": "summarise", "wildcards": {}, "script": None, "inputs": {}, "code": {}}
    config = {"rule": "write_config", "outputs": [], "parameters": {"text": "study: [a, b]\n"}}
    jobs = {"summarise": job | {"parameters": {}, "outputs": [*FILES]}, "write_config": job | config}
    digests = {file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in FILES}
    products = {
        file: {"sha256": digest, "size": 1, "rule": "summarise", "job": "summarise"} for file, digest in digests.items()
    }
    facts = {"study": ["a", "b"], "configuration": {}, "git": {"revision": None}, "python": "3.11", "packages": {}}
    facts |= {"raw": {}, "code": {}, "jobs": jobs, "products": products}
    (folder / STUDY_FOLDER / "manifest.json").write_bytes(seal_json(facts | overrides))


def test_the_numbers_are_those_of_the_traces_of_the_study(folder):
    results = read_results(folder / "results", "two")
    assert results.paths == dict(zip(("a", "b"), FILES, strict=True))
    assert results.metrics["b"].keys() == {"data.jobs", "of.b"}
    assert results.configuration["study"] == ["a", "b"]


def test_withheld_numbers_have_their_reason(folder, monkeypatch):
    monkeypatch.chdir(folder)
    results = read_results(Path("results"), "two")
    Path("results/a/brief.json").write_text(json.dumps({"withheld": {"ettr.mttf_s": "no causes"}}))
    assert read_subject("a", results).withheld == {"ettr.mttf_s": "no causes"}
    assert read_subject("b", results).withheld == {}


def test_an_unknown_study_is_reported(folder):
    with pytest.raises(StudyError, match=r"contains no study one, but two\. Choose by --study"):
        read_results(folder / "results", "one")


def test_edited_numbers_are_refused(folder):
    (folder / FILES[1]).write_text("{}")
    with pytest.raises(StudyError, match="edited since it was made"):
        read_results(folder / "results", "two")


@pytest.mark.parametrize("overrides", [{"packages": []}, {"python": None}, {"git": {}}, {"jobs": []}])
def test_an_invalid_manifest_is_refused(folder, overrides):
    write_manifest(folder, **overrides)
    with pytest.raises(StudyError, match="is not a manifest of a study"):
        read_results(folder / "results", "two")


@pytest.mark.parametrize("text", ["", "[1]", "null", '{"a": 1}', '{"a": {"value": 1}}', "[" * 100_000, "\ud800"])
def test_an_invalid_metrics_json_gives_one_message(tmp_path, text):
    file = tmp_path / "metrics.json"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(StudyError, match=r"is not the metrics\.json of a study"):
        read_numbers(file)
