"""`ttf verify` reports each kind of tampering with a small study in few lines and without a traceback."""

import json
import shutil
import signal
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from faults.tampering import KINDS, Finished, tampered
from ttf.analyses.shared.risk.score import SCORES, SKEW
from ttf.commands import score
from ttf.commands import verify as verify_command
from ttf.engine import checkout
from ttf.engine.provenance import (
    digests,
    manifest_graph,  # noqa: F401 finds its schema before CHECKOUT is patched
)
from ttf.engine.provenance import manifest as manifests
from ttf.engine.provenance.digests import MEMORY, DigestCache
from ttf.engine.provenance.seal import seal_json

FILES = {
    "data/raw.csv": "a,b\n" * 9,
    "Snakefile": "#\n",
    "pyproject.toml": "[project]\nversion = '1.0.0'\n",
    "workflow/rules/read.smk": "rule read:\n",
    "scripts/read.py": "1\n",
    "scripts/ttf/formats/openb.yaml": "a: b\n",
    "config/config.yaml": "study: []\n",
    "report/page/page.js": "1;\n",
    "results/mine/raw/one.csv": "1\n",
    "results/mine/raw/deeper/two.csv": "2\n",
    "results/mine/table.csv": "n\n1\n",
    "results/studies/mine/report/index.html": "<p>",
    "results/studies/mine/config.yaml": "study: [mine]\n",
}


def make_job(rule, outputs, inputs):
    details = {"wildcards": {"trace": "mine"}, "script": "scripts/read.py", "code": [], "parameters": {"most": 3}}
    return {"rule": rule, "inputs": inputs, "outputs": outputs} | details


JOBS = [
    make_job("read", ["results/mine/raw"], ["data/raw.csv"]),
    make_job("count", ["results/mine/table.csv"], ["results/mine/raw"]),
    make_job("show", ["results/studies/mine/report/index.html"], ["results/mine/table.csv"]),
    make_job("write_config", ["results/studies/mine/config.yaml"], []),
]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A finished study in a checkout of its own."""
    folder = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for module in (checkout, manifests):
            patch.setattr(module, "CHECKOUT", folder)
        patch.setattr(checkout, "PACKAGE", folder / "scripts/ttf")
        patch.setattr(manifests, "versions", lambda project: {})
        for name, text in FILES.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        for output in (output for job in JOBS for output in job["outputs"]):
            record = Path(".snakemake/metadata", urlsafe_b64encode(output.encode()).decode())
            record.parent.mkdir(parents=True, exist_ok=True)
            written_s = max(Path(file).stat().st_mtime for file in digests.list_members(output))
            record.write_text(json.dumps({"endtime": written_s}))
        memory, finished = DigestCache(MEMORY), Finished(folder)
        finished.manifest.write_bytes(
            seal_json(manifests.make_manifest(JOBS, ["mine"], {"data": ["left out.doc"]}, memory))
        )
        memory.store(memory.digests([str(finished.manifest.relative_to(folder))]))
        yield finished


@pytest.fixture
def site(study):
    """The published site of the study, of which Snakemake has a record."""
    folder = study.own / "site"
    folder.mkdir()
    record = Path(".snakemake/metadata", urlsafe_b64encode(str(folder.relative_to(study.folder)).encode()).decode())
    record.write_text("{}")
    (folder / "index.html").touch()
    yield folder
    shutil.rmtree(folder)
    record.unlink()


def verify(capsys) -> tuple[int, str]:
    """Verify the study in this process, within 20 seconds."""
    signal.alarm(20)
    code = verify_command.verify("mine")
    signal.alarm(0)
    printed = capsys.readouterr()
    return code, (printed.out + printed.err).replace("study mine\n", "")


def test_an_edited_product_with_its_old_date_is_no_new_product(study, capsys):
    """Snakemake's record is older than the manifest, so the message must not say that a rule ran since."""
    with tampered(study, "a bit of a product, with its old date", 1):
        output = verify(capsys)[1]
    assert "edited since" in output
    assert "made again" not in output


@pytest.mark.parametrize("kind", KINDS)
def test_each_change_is_reported(study, capsys, kind):
    with tampered(study, kind, 0) as change:
        code, output = verify(capsys)
    assert code == (2 if kind == "the manifest removed" else 1), change
    assert 1 <= output.count("\n") <= 40 and len(output) < 3000, change
    assert verify(capsys)[0] == 0, "the study is restored"


def test_an_invented_manifest_gives_no_traceback(study, capsys):
    """Verify without the record of the last run, as on another machine."""
    memory = MEMORY.read_bytes()
    MEMORY.unlink()
    for seed in range(40):
        with tampered(study, "a value of the manifest", seed) as change:
            code, output = verify(capsys)
        assert code in (0, 1, 2), change
        assert len(output) < 30_000, change
    MEMORY.write_bytes(memory)


@pytest.mark.usefixtures("site")
def test_products_outside_the_study_are_no_additions(study, capsys):
    """Neither a site nor products of another study are additions."""
    other_study = Path("results/studies/other")
    (other_study / "report").mkdir(parents=True)
    (other_study / "report/index.html").touch()
    Path("results/mine/more.csv").touch()
    (other_study / "manifest.json").write_bytes(seal_json({"products": {"results/mine/more.csv": {}}}))
    assert verify(capsys)[0] == 0
    (other_study / "manifest.json").write_bytes(b"{}")
    assert verify(capsys) == (1, "results/mine/more.csv: added; no rule of the study made it. Remove it.\n")
    Path("results/mine/more.csv").unlink()
    shutil.rmtree(other_study)


def test_raw_files_that_are_not_read_are_no_additions(study, capsys):
    for name in ("left out.doc", ".part", "README.md"):
        Path("data", name).touch()
    assert verify(capsys)[0] == 0
    Path("data/2026.csv").touch()
    output = "data/2026.csv: added since the manifest was written. Remove it, or read it: `ttf report`.\n"
    assert verify(capsys) == (1, output)
    Path("data/2026.csv").unlink()


def test_a_raw_file_that_was_a_link_may_be_one(study, capsys):
    """A folder of raw files may consist of links."""
    raw, manifest = Path("data/raw.csv"), study.manifest.read_bytes()
    raw.rename("outside.csv")
    raw.symlink_to(Path("outside.csv").absolute())
    assert verify(capsys) == (1, "data/raw.csv: a link was put there. Put the file itself back.\n")
    facts = manifests.make_manifest(JOBS, ["mine"], {"data": ["left out.doc"]}, DigestCache(MEMORY))
    assert facts["raw"]["data/raw.csv"]["link"]
    study.manifest.write_bytes(seal_json(facts))
    DigestCache(MEMORY).store(DigestCache(MEMORY).digests([str(study.manifest.relative_to(study.folder))]))
    assert verify(capsys)[0] == 0
    raw.unlink()
    Path("outside.csv").rename(raw)
    study.manifest.write_bytes(manifest)
    DigestCache(MEMORY).store(DigestCache(MEMORY).digests([str(study.manifest.relative_to(study.folder))]))
    assert verify(capsys)[0] == 0


def test_scores_are_no_addition_until_they_are_edited(study, capsys):
    scores = Path("results/mine/scores/new.csv"), Path("results/mine/scores/new.skew.csv")
    frames = [contract.frame([]) for contract in (SCORES, SKEW)]
    score._write_scores_and_skew(*frames, scores)
    assert verify(capsys)[0] == 0
    scores[0].write_text("more")
    assert verify(capsys) == (1, f"{scores[0]}: edited since `ttf` wrote it. Remove it.\n")
    shutil.rmtree(scores[0].parent)


def test_a_link_for_a_whole_site_is_reported(study, site, capsys):
    target = study.folder / "outside"
    site.rename(target)
    site.symlink_to(target)
    assert verify(capsys) == (1, "results/studies/mine/site: a link was put there. Remove it.\n")
    site.unlink()
    target.rename(site)


def test_a_site_that_has_its_list_is_verified_with_the_study(study, site, capsys):
    verify_command.seal.write_list(site)
    assert verify(capsys)[0] == 0
    for ending in verify_command.seal.SIGNATURES:
        for signed in (study.manifest, site / verify_command.seal.NAME):
            Path(f"{signed}{ending}").touch()
    assert verify(capsys)[0] == 0, "a signature is no addition"
    (site / "index.html").write_text("more")
    assert verify(capsys) == (1, "results/studies/mine/site/index.html: changed; it has 4 bytes instead of 0\n")
    for ending in verify_command.seal.SIGNATURES:
        Path(f"{study.manifest}{ending}").unlink()
