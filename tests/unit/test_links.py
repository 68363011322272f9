"""Snakemake gets paths with braces as links; users and scripts get the original names."""

import pytest
from ttf.engine.storage.links import path_for_snakemake, resolve_link


@pytest.fixture(autouse=True)
def working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", ["raw/a b.csv", '/x ü\'b/"q".csv', "raw//a.csv", "./a/../b"])
def test_a_path_without_braces_needs_no_link(path):
    assert path_for_snakemake(path) == resolve_link(path) == path


@pytest.mark.parametrize("path", ["x {a} ü'b/deep/a.csv.gz", "<b>/{c}/a.csv.gz", "raw/a{1}.csv.gz"])
def test_a_path_with_braces_gets_a_link_without_them(path, tmp_path):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text("here")
    for target in (path, str(file)):
        link = path_for_snakemake(target)
        assert not set(link) & set("{}<>")
        assert link.endswith(".csv.gz")
        assert (tmp_path / link).read_text() == "here"
        assert path_for_snakemake(target) == link
        assert resolve_link(link) == path


def test_links_work_after_the_folder_has_moved(tmp_path, monkeypatch):
    for name in ("before", "after"):
        (tmp_path / name / "{x}").mkdir(parents=True)
        (tmp_path / name / "{x}" / "a.csv").write_text(name)
    monkeypatch.chdir(tmp_path / "before")
    link = path_for_snakemake("{x}/a.csv")
    (tmp_path / "before" / ".snakemake").rename(tmp_path / "after" / ".snakemake")
    monkeypatch.chdir(tmp_path / "after")
    assert path_for_snakemake("{x}/a.csv") == link
    assert (tmp_path / "after" / link).read_text() == "after"
