"""Names that Snakemake cannot take reach it through links, and people and scripts as they are."""

import pytest
from snakemake.iocontainers import InputFiles
from ttf.engine.storage.links import by_own_names, linked, own_name


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", ["raw/a b.csv", '/x ü\'b/"q".csv', "raw//a.csv", "./a/../b"])
def test_any_other_name_stands_as_it_is(path):
    assert linked(path) == own_name(path) == path


@pytest.mark.parametrize("path", ["x {a} ü'b/deep/a.csv.gz", "<b>/{c}/a.csv.gz", "raw/a{1}.csv.gz"])
def test_braces_are_kept_from_snakemake(path, tmp_path):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text("here")
    for given in (path, str(file)):
        link = linked(given)
        assert not set(link) & set("{}<>")
        assert link.endswith(".csv.gz")
        assert (tmp_path / link).read_text() == "here"
        assert linked(given) == link
        assert own_name(link) == path


def test_a_folder_that_moved_is_found_again(tmp_path, monkeypatch):
    for name in ("before", "after"):
        (tmp_path / name / "{x}").mkdir(parents=True)
        (tmp_path / name / "{x}" / "a.csv").write_text(name)
    monkeypatch.chdir(tmp_path / "before")
    link = linked("{x}/a.csv")
    (tmp_path / "before" / ".snakemake").rename(tmp_path / "after" / ".snakemake")
    monkeypatch.chdir(tmp_path / "after")
    assert linked("{x}/a.csv") == link
    assert (tmp_path / "after" / link).read_text() == "after"


def test_scripts_get_their_inputs_as_they_are_called():
    inputs = InputFiles(fromdict={"nodes": linked("{x}/nodes.csv")})
    inputs.extend(["plain.csv", linked("{x}/pods.csv")])
    inputs._set_name("pods", 1, end=3)
    given = by_own_names(inputs)
    assert (given.nodes, list(given.pods)) == ("{x}/nodes.csv", ["plain.csv", "{x}/pods.csv"])
