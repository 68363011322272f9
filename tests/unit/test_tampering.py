"""Every kind of tampering with a small study is told by `make verify`, in lines that end; none gives a traceback."""

import json
import shutil
import signal
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
import score_jobs
import verify_results
from faults.tampering import KINDS, Finished, tampered
from ttf.analyses.shared.risk.score import SCORES, SKEW
from ttf.engine.provenance import digests
from ttf.engine.provenance import manifest as of_manifest
from ttf.engine.provenance.digests import MEMORY, Memory
from ttf.engine.provenance.seal import sealed

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


def job(rule, outputs, inputs):
    about = {"wildcards": {"trace": "mine"}, "script": "scripts/read.py", "code": [], "parameters": {"most": 3}}
    return {"rule": rule, "inputs": inputs, "outputs": outputs} | about


JOBS = [
    job("read", ["results/mine/raw"], ["data/raw.csv"]),
    job("count", ["results/mine/table.csv"], ["results/mine/raw"]),
    job("show", ["results/studies/mine/report/index.html"], ["results/mine/table.csv"]),
    job("write_config", ["results/studies/mine/config.yaml"], []),
]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study made in a checkout of its own."""
    folder = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(digests, "CHECKOUT", folder)
        patch.setattr(of_manifest, "CHECKOUT", folder)
        patch.setattr(of_manifest, "versions", lambda project: {})
        for name, text in FILES.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        for output in (output for made in JOBS for output in made["outputs"]):
            record = Path(".snakemake/metadata", urlsafe_b64encode(output.encode()).decode())
            record.parent.mkdir(parents=True, exist_ok=True)
            written = max(Path(file).stat().st_mtime for file in digests.members(output))
            record.write_text(json.dumps({"endtime": written}))
        memory, made = Memory(MEMORY), Finished(folder)
        made.manifest.write_bytes(sealed(of_manifest.manifest(JOBS, ["mine"], {"data": ["left out.doc"]}, memory)))
        memory.keep(memory.digests([str(made.manifest.relative_to(folder))]))
        yield made


def verify(capsys) -> tuple[int, str]:
    """In this process; nothing may take long."""
    signal.alarm(20)
    code = verify_results.main(["--study", "mine"])
    signal.alarm(0)
    said = capsys.readouterr()
    return code, (said.out + said.err).replace("study mine\n", "")


def test_an_edited_product_of_its_old_date_was_not_made_anew(study, capsys):
    """Snakemake's record is of before the manifest; the words were those of a rule that ran since."""
    with tampered(study, "a bit of a product, with its old date", 1):
        said = verify(capsys)[1]
    assert "edited since" in said
    assert "made again" not in said


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_told(study, capsys, kind):
    for seed in range(2):
        with tampered(study, kind, seed) as what:
            code, said = verify(capsys)
        assert code == (2 if kind == "the manifest removed" else 1), what
        assert 1 <= said.count("\n") <= 40
        assert len(said) < 3000, what
    assert verify(capsys)[0] == 0, "all is put back"


def test_a_manifest_that_was_made_up_gives_no_traceback(study, capsys):
    """On another machine, where nothing is known of the last run here."""
    memory = MEMORY.read_bytes()
    MEMORY.unlink()
    for seed in range(150):
        with tampered(study, "a value of the manifest", seed) as what:
            code, said = verify(capsys)
        assert code in (0, 1, 2), what
        assert len(said) < 30_000, what
    MEMORY.write_bytes(memory)


def test_what_a_rule_made_that_is_of_no_study_is_no_addition(study, capsys):
    """A site, an archive; what another study has."""
    site = study.own / "site"
    site.mkdir()
    record = Path(".snakemake/metadata", urlsafe_b64encode(str(site.relative_to(study.folder)).encode()).decode())
    record.write_text("{}")
    (site / "index.html").touch()
    other = Path("results/studies/other")
    (other / "report").mkdir(parents=True)
    (other / "report/index.html").touch()
    Path("results/mine/more.csv").touch()
    (other / "manifest.json").write_bytes(sealed({"products": {"results/mine/more.csv": {}}}))
    assert verify(capsys)[0] == 0
    (other / "manifest.json").write_bytes(b"{}")
    assert verify(capsys) == (1, "results/mine/more.csv: added; no rule of the study made it. Remove it.\n")
    Path("results/mine/more.csv").unlink()


def test_what_was_left_out_of_the_raw_files_and_what_is_never_read_is_no_addition(study, capsys):
    for name in ("left out.doc", ".part", "README.md"):
        Path("data", name).touch()
    assert verify(capsys)[0] == 0
    Path("data/2026.csv").touch()
    said = "data/2026.csv: added since the manifest was written. Run `make report`, or remove it.\n"
    assert verify(capsys) == (1, said)
    Path("data/2026.csv").unlink()


def test_a_raw_file_that_was_a_link_may_be_one(study, capsys):
    """Links are what a folder of raw files may be made of."""
    raw, manifest = Path("data/raw.csv"), study.manifest.read_bytes()
    raw.rename("outside.csv")
    raw.symlink_to(Path("outside.csv").absolute())
    assert verify(capsys) == (1, "data/raw.csv: a link was put there. Put the file itself back.\n")
    made = of_manifest.manifest(JOBS, ["mine"], {"data": ["left out.doc"]}, Memory(MEMORY))
    assert made["raw"]["data/raw.csv"]["link"]
    study.manifest.write_bytes(sealed(made))
    Memory(MEMORY).keep(Memory(MEMORY).digests([str(study.manifest.relative_to(study.folder))]))
    assert verify(capsys)[0] == 0
    raw.unlink()
    Path("outside.csv").rename(raw)
    study.manifest.write_bytes(manifest)
    Memory(MEMORY).keep(Memory(MEMORY).digests([str(study.manifest.relative_to(study.folder))]))
    assert verify(capsys)[0] == 0


def test_scores_are_no_addition_until_they_are_edited(study, capsys):
    scores = Path("results/mine/scores/new.csv"), Path("results/mine/scores/new.skew.csv")
    frames = [contract.frame([]) for contract in (SCORES, SKEW)]
    score_jobs._write(*frames, scores)
    assert verify(capsys)[0] == 0
    scores[0].write_text("more")
    assert verify(capsys) == (1, f"{scores[0]}: edited since `make score` wrote it. Remove it.\n")
    shutil.rmtree(scores[0].parent)


def test_a_link_for_a_whole_site_is_told(study, capsys):
    site, outside = study.own / "site", study.folder / "outside"
    site.rename(outside)
    site.symlink_to(outside)
    assert verify(capsys) == (1, "results/studies/mine/site: a link was put there. Remove it.\n")
    site.unlink()
    outside.rename(site)


def test_a_site_that_has_its_list_is_verified_with_the_study(study, capsys):
    site = study.own / "site"
    verify_results.seal.seal(site)
    assert verify(capsys)[0] == 0
    for ending in verify_results.seal.SIGNATURES:
        for signed in (study.manifest, site / verify_results.seal.NAME):
            Path(f"{signed}{ending}").touch()
    assert verify(capsys)[0] == 0, "a signature is no addition"
    (site / "index.html").write_text("more")
    assert verify(capsys) == (1, "results/studies/mine/site/index.html: changed; it has 4 bytes instead of 0\n")
