"""Hashes, the manifest and its problems, on a study of three small files."""

import hashlib
import json
import os
import subprocess
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from ttf.engine.checkout import CHECKOUT
from ttf.engine.errors import StudyError
from ttf.engine.provenance import digests
from ttf.engine.provenance.digests import DigestCache, digest_folder, is_touched
from ttf.engine.provenance.explain import explain
from ttf.engine.provenance.manifest import make_manifest, revision
from ttf.engine.provenance.manifest_graph import Manifest, find_problems


def job(rule, outputs, inputs, **parameters):
    script = "scripts/write_config.py"
    return {
        "rule": rule,
        "wildcards": {"trace": "mine"},
        "script": script,
        "parameters": parameters,
        "inputs": inputs,
        "code": [str(CHECKOUT / "scripts/ttf/engine/errors.py")],
        "outputs": outputs,
    }


# raw.csv -> (read) -> a folder -> (count) -> table and chart -> (show) -> page
OWN = Path("results/studies/mine")
JOBS = [
    job("count", ["results/mine/table.csv", "results/mine/chart.svg"], ["results/mine/raw"], most=3, blank=None),
    job("read", ["results/mine/raw"], ["raw.csv"], files=["raw.csv"] * 40),
    job("show", ["results/page.html"], ["results/mine/chart.svg", "results/mine/table.csv"]),
]
TEXTS = {
    "raw.csv": "a,b\n",
    "results/mine/raw/one.parquet": "1",
    "results/mine/raw/deeper/two.parquet": "2",
    "results/mine/raw/.snakemake_timestamp": "",
    "results/mine/table.csv": "n\n1\n",
    "results/mine/chart.svg": "<svg/>",
    "results/page.html": "<p>",
}


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(digests, "WORKFLOW", ("scripts/ttf/engine/errors.py", "scripts/write_config.py"))
    for name, text in TEXTS.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    Path(".snakemake/metadata").mkdir(parents=True)
    for output in (output for entry in JOBS for output in entry["outputs"]):
        record_finished(output)
    return tmp_path


def record_finished(output):
    """Write Snakemake's record of a finished output; the record of a folder has the time of its time stamp."""
    file = Path(output, ".snakemake_timestamp") if Path(output).is_dir() else Path(output)
    record = Path(".snakemake/metadata", urlsafe_b64encode(output.encode()).decode())
    record.write_text(json.dumps({"endtime": file.stat().st_mtime}))


def edit(file, text="by hand"):
    Path(file).write_text(text)
    later = Path(file).stat().st_mtime_ns + 10**9
    os.utime(file, ns=(later, later))


def load(jobs=JOBS):
    return Manifest(make_manifest(jobs, ["mine"], {}, DigestCache(Path(".snakemake/sha256.json"))))


def test_the_manifest(study):
    record = load()
    assert record["products"]["results/mine/table.csv"] == {
        "sha256": sha256("n\n1\n"),
        "size": 4,
        "rule": "count",
        "job": "mine/count",
    }
    assert list(record["products"]) == sorted(name for name in TEXTS if name[0] == "r" and "stamp" not in name)[1:]
    assert record["raw"] == {"raw.csv": {"sha256": sha256("a,b\n"), "size": 4}}
    assert list(record["code"]) == ["scripts/ttf/engine/errors.py", "scripts/write_config.py"], (
        "of the checkout, from there"
    )
    folder = digest_folder("results/mine/raw", {name: sha256(text) for name, text in TEXTS.items()})
    assert record["jobs"]["mine/count"]["inputs"] == {"results/mine/raw": folder}
    assert record["jobs"]["mine/count"]["parameters"] == {"most": 3, "blank": None}
    assert load() == record, "from memory"


def test_a_file_is_read_once_per_change(study, monkeypatch):
    memory = DigestCache(Path(".snakemake/sha256.json"))
    memory.store(memory.digests(["raw.csv"]))
    reopened = DigestCache(Path(".snakemake/sha256.json"))
    monkeypatch.setattr(digests, "_sha256", lambda path: "read again")
    assert reopened.digests(["raw.csv"]) == {"raw.csv": sha256("a,b\n")}
    edit("raw.csv", "b,a\n")
    assert reopened.digests(["raw.csv"]) == {"raw.csv": "read again"}


@pytest.mark.parametrize("file", ["results/mine/table.csv", "results/mine/raw/one.parquet"])
def test_an_edited_product_stays_edited_until_its_rule_makes_it_again(study, file):
    output = file if file.endswith("csv") else "results/mine/raw"
    load()
    edit(file)
    assert is_touched(file, output)
    for _ in range(2):
        assert [name for name, product in load()["products"].items() if "edited" in product] == [file]
    assert find_problems(load(), OWN) == [
        f"{file}: edited since {'count' if output == file else 'read'} made it. Delete it and run `ttf report`."
    ]
    edit(file, "made anew")
    if output != file:
        edit("results/mine/raw/.snakemake_timestamp", "")
        edit("results/mine/raw/.snakemake_timestamp", "")
    record_finished(output)
    assert find_problems(load(), OWN) == []


def test_a_touched_product_is_not_edited(study):
    load()
    edit("results/mine/table.csv", TEXTS["results/mine/table.csv"])
    assert is_touched("results/mine/table.csv", "results/mine/table.csv")
    assert not any("edited" in product for product in load()["products"].values())


def test_a_record_with_a_long_name(study):
    output = f"results/{'long/' * 60}table.csv"
    Path(output).parent.mkdir(parents=True)
    Path(output).write_text("x")
    name = urlsafe_b64encode(output.encode()).decode()
    record = Path(".snakemake/metadata", f"@{name[:254]}", name[254:])
    record.parent.mkdir()
    record.write_text(json.dumps({"endtime": 7.5}))
    assert digests.read_end_time(output) == 7.5


def test_each_problem_has_one_line(study):
    record = load()
    edit("raw.csv")
    edit("results/mine/raw/one.parquet")
    Path("results/page.html").unlink()
    edit("results/mine/table.csv")
    record_finished("results/mine/table.csv")
    assert find_problems(record, OWN) == [
        "raw.csv: changed since read used it; 5 products out of date. Run `ttf report`.",
        "results/mine/raw/one.parquet: edited since read made it. Delete it and run `ttf report`.",
        "results/mine/table.csv: made again by count after the manifest was written. "
        "Run `ttf report` to update the manifest.",
        "results/page.html: missing. Run `ttf report`: show makes it again.",
    ]
    Path("raw.csv").unlink()
    assert (
        find_problems(record, OWN)[0] == "raw.csv: missing; 5 products come from it. Put it back, or run `ttf report`."
    )


def test_a_picture_goes_back_to_its_own_chart(study):
    charts, pictures = (
        [f"results/mine/figures/{name}.{ending}" for name in ("one", "two")] for ending in ("vl.json", "svg")
    )
    for file in (*charts, *pictures):
        Path(file).parent.mkdir(exist_ok=True)
        edit(file)
        record_finished(file)
    record = load([job("plot", charts, ["results/mine/raw"]), job("draw", pictures, [*charts, "raw.csv"]), *JOBS])
    explanation = explain(record, pictures[1])
    assert charts[1] in explanation
    assert charts[0] not in explanation
    assert "from raw.csv" in explanation


def test_the_tree_of_a_product(study):
    short_sha256 = {name: sha256(text)[:12] for name, text in TEXTS.items()}
    assert explain(load(), "results/page.html").splitlines() == [
        f"results/page.html, 3 bytes, sha256 {short_sha256['results/page.html']}",
        "  by show: scripts/write_config.py and 1 module",
        "    from results/mine/chart.svg, results/mine/table.csv",
        "      by count: scripts/write_config.py and 1 module",
        "      with most = 3",
        "        from results/mine/raw",
        "          by read: scripts/write_config.py and 1 module",
        "          with files = [raw.csv, raw.csv, raw.csv, raw.csv, raw.csv, raw.csv, raw.…",
        f"            from raw.csv, 4 bytes, sha256 {short_sha256['raw.csv']}, raw",
    ]
    assert explain(load(), "./results/mine/table.csv").splitlines()[0].startswith("results/mine/table.csv, 4 bytes")
    assert explain(load(), "mine/raw/one.parquet").splitlines()[1] == "  by read: scripts/write_config.py and 1 module"
    edited = load()
    edit("results/page.html")
    assert "results/page.html (edited since), 3 bytes" in explain(edited, "results/page.html")


def test_the_tree_of_a_number(study):
    metrics = "results/mine/metrics.json"
    value = {"value": 12.5, "unit": "s", "n": 1200, "source": "table.csv", "column": "mttf_s", "line": 3}
    value["definition"] = "Mean time."
    Path(metrics).write_text(json.dumps({"mttf.all": value, "gpu": value | {"value": "\x1b[2J", "n": None}}))
    jobs = [*JOBS, job("summarise", [metrics], ["results/mine/table.csv"])]
    record = Manifest(make_manifest(jobs, ["mine"], {}, DigestCache(Path(".snakemake/sha256.json"))))
    table = f"results/mine/table.csv, 4 bytes, sha256 {sha256(TEXTS['results/mine/table.csv'])[:12]}"
    cell = [
        "mttf.all = 12.5 s (n = 1,200), in results/mine/metrics.json",
        "  means: Mean time.",
        f"  is the cell mttf_s in line 3 of {table}",
    ]
    tree = [f"  from {table}", "    by count: scripts/write_config.py and 1 module"]
    assert explain(record, metrics, "mttf.all").splitlines()[:5] == cell + tree
    short = explain(record, None, "mttf.all", verbose=False).splitlines()
    assert short[:3] == cell and "  of the raw files raw.csv" in short
    assert "\x1b" not in explain(record, metrics, "gpu")
    for arguments, message in (
        ((metrics, "mtf.all"), r"Did you mean mttf\.all"),
        (("results/mine/table.csv", "mttf.all"), "holds no numbers by key"),
        (("results/mine/tabel.csv",), r"Did you mean results/mine/table\.csv"),
    ):
        with pytest.raises(StudyError, match=message):
            explain(record, *arguments)


def test_every_file_of_the_workflow_is_in_the_manifest_used_or_not(study, monkeypatch):
    before = digests.workflow_digest()
    monkeypatch.undo()
    monkeypatch.chdir(study)
    names = digests.list_code_files()
    assert {"Snakefile", "workflow/rules/ingest.smk", "scripts/ttf/formats/openb.yaml", "config/claims.yaml"} < {*names}
    assert not any("__pycache__" in name for name in names)
    assert digests.workflow_digest() != before


def test_no_manifest_and_a_broken_one(study):
    with pytest.raises(StudyError, match="there is no manifest yet"):
        Manifest.read(Path("manifest.json"))
    Path("manifest.json").write_text("{")
    with pytest.raises(StudyError, match="Delete it"):
        Manifest.read(Path("manifest.json"))


def test_the_revision_of_a_checkout(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True)

    assert revision(tmp_path) == {
        "revision": None,
        "changed": None,
        "reason": "the workflow is not a git checkout with a commit",
    }
    git("init")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/a.py").write_text("1\n")
    git("add", ".")
    git("commit", "-m", "one")
    committed = revision(tmp_path)
    assert len(committed["revision"]) == 40
    assert (committed["changed"], committed["reason"]) == (False, None)
    (tmp_path / "notes.txt").write_text("no part of the code\n")
    assert revision(tmp_path) == committed
    (tmp_path / "scripts/b.py").write_text("2\n")
    assert revision(tmp_path) == committed | {"changed": True}
    assert revision(tmp_path / "scripts")["reason"] == "the workflow lies inside another repository"
    monkeypatch.setenv("PATH", "")
    assert revision(tmp_path)["reason"] == "git is not installed"
