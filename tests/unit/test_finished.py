"""The numbers of a finished study of several traces, and of earlier results in a folder."""

import hashlib
import json
from pathlib import Path

import pytest
from study.finished import earlier, numbers_in, results_of, subject_of
from ttf.engine.errors import StudyError
from ttf.engine.provenance.seal import sealed

NUMBER = {"value": 1, "unit": "jobs", "n": None, "source": "tables/outcomes.csv"}
OWN = "results/studies/two"
FILES = ("results/a/metrics.json", "results/b/metrics.json", f"{OWN}/comparison/metrics.json")


@pytest.fixture
def folder(tmp_path) -> Path:
    """The study `two` of the traces a and b, and a trace c of another study."""
    for file in (*FILES, "results/c/metrics.json"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(json.dumps({"data.jobs": NUMBER, f"of.{Path(file).parent.name}": NUMBER}))
    write_manifest(tmp_path)
    return tmp_path


def write_manifest(folder: Path, **other) -> None:
    job = {"rule": "summarise", "wildcards": {}, "script": None, "inputs": {}, "code": {}}
    config = {"rule": "write_config", "outputs": [], "parameters": {"text": "study: [a, b]\n"}}
    jobs = {"summarise": job | {"parameters": {}, "outputs": [*FILES]}, "write_config": job | config}
    digests = {file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in FILES}
    made = {
        file: {"sha256": digest, "size": 1, "rule": "summarise", "job": "summarise"} for file, digest in digests.items()
    }
    facts = {"study": ["a", "b"], "configuration": {}, "git": {"revision": None}, "python": "3.11", "packages": {}}
    facts |= {"raw": {}, "code": {}, "jobs": jobs, "products": made}
    (folder / OWN / "manifest.json").write_bytes(sealed(facts | other))


def test_its_subjects_are_its_traces_and_the_comparison(folder):
    found = results_of(folder / "results", "two")
    assert found.paths == dict(zip(("a", "b", "comparison"), FILES, strict=True))
    assert found.metrics["comparison"].keys() == {"data.jobs", "of.comparison"}
    assert found.configuration == {"study": ["a", "b"]}


def test_what_the_brief_withholds_comes_with_its_reason(folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = results_of(Path("results"), "two")
    Path("results/a/brief.json").write_text(json.dumps({"withheld": {"ettr.mttf_s": "no causes"}}))
    assert subject_of("a", found).withheld == {"ettr.mttf_s": "no causes"}
    assert subject_of("b", found).withheld == {}


def test_earlier_results_are_a_folder_that_holds_them_or_they_themselves(folder):
    assert earlier(folder) == earlier(folder / "results") == folder / "results"


def test_a_study_that_is_not_among_them_is_named(folder):
    with pytest.raises(StudyError, match=r"holds no study one; it has two\. STUDY=name for another"):
        results_of(folder / "results", "one")


def test_numbers_that_are_not_those_of_the_manifest_are_refused(folder):
    (folder / FILES[1]).write_text("{}")
    with pytest.raises(StudyError, match="edited since it was made"):
        results_of(folder / "results", "two")


@pytest.mark.parametrize("other", [{"packages": []}, {"python": None}, {"git": {}}, {"jobs": []}])
def test_a_manifest_that_was_made_up_is_refused(folder, other):
    write_manifest(folder, **other)
    with pytest.raises(StudyError, match="is not a manifest of a study"):
        results_of(folder / "results", "two")


@pytest.mark.parametrize(
    "text", ["", "[]", "[1]", "1", "null", '{"a": 1}', '{"a": {"value": 1}}', "[" * 100_000, "\ud800"]
)
def test_what_is_no_metrics_json_is_refused_in_one_message(tmp_path, text):
    file = tmp_path / "metrics.json"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(StudyError, match=r"is no metrics\.json of a study"):
        numbers_in(file)
