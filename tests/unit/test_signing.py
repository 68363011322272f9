"""The commands of docs/publishing.md sign an archive with a new key and detect a changed byte."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ttf.engine.provenance import seal

DOCS = (Path(__file__).resolve().parents[2] / "docs/publishing.md").read_text(encoding="utf-8")
ARCHIVE = "results/studies/sample_slurm/archive/time-to-failure-results.tar.xz"


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed")
def test_ssh_keygen_signs_and_detects_a_changed_archive(tmp_path):
    (commands,) = re.findall(r"```sh\n([^`]*ssh-keygen.*?)```", DOCS, re.DOTALL)
    assert commands.startswith(f"ARCHIVE={ARCHIVE}\n")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ARCHIVE).parent.mkdir(parents=True)
    (tmp_path / ARCHIVE).write_bytes(b"packed")
    make_key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / ".ssh/id_ed25519"]
    subprocess.run(make_key, check=True, stdin=subprocess.DEVNULL)

    def run_shell(text):
        env = os.environ | {"HOME": str(tmp_path)}
        return subprocess.run(["bash", "-e", "-c", text], cwd=tmp_path, env=env, capture_output=True, text=True)

    process = run_shell(commands.replace("~", "$HOME"))
    assert process.returncode == 0, process.stderr
    assert "Good" in process.stdout
    assert (tmp_path / f"{ARCHIVE}.sig").is_file()
    assert ".sig" in seal.SIGNATURES
    (tmp_path / ARCHIVE).write_bytes(b"Packed")
    assignment, *_, verify = commands.strip().splitlines()
    assert run_shell(f"{assignment}\n{verify}").returncode != 0


def test_cosign_puts_its_bundle_where_verify_expects_a_signature():
    assert "--bundle $ARCHIVE.sigstore.json" in DOCS
    assert ".sigstore.json" in seal.SIGNATURES
