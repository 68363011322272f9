"""The first changes that docs/CONTRIBUTING.md shows rerun exactly the rules that it names."""

import re
import subprocess

import pytest
import yaml
from study_runs import ROOT, SMALL

CONTRIBUTING = (ROOT / "docs/CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = CONTRIBUTING.partition("\n## First changes\n")[2].partition("\n## ")[0]
# Subject; language and text of the block; the sentence that names the rules.
CHANGE = re.compile(r"^\*\*(.+?)\*\*[^\n]*\n\n```(\w+)\n(.*?)^```\n\n(Reruns .*?)$", re.DOTALL | re.MULTILINE)
CHANGES = {subject: change for subject, *change in CHANGE.findall(SECTION)}


def test_the_section_shows_every_change():
    assert [*CHANGES] == ["A colour", "A sentence of the page", "A threshold of the study", "A threshold of an alarm"]
    assert "(#an-analysis)" in SECTION


@pytest.mark.parametrize("subject", CHANGES)
def test_a_change_reruns_exactly_the_named_rules(study, subject):
    language, block, sentence = CHANGES[subject]
    settings = yaml.safe_load(block) if language == "yaml" else {}
    if language == "bash":
        file = re.search(r"\S+$", block)[0]
        path = study.folder / file
        text_before = path.read_text(encoding="utf-8") if path.exists() else ""
        subprocess.run(["bash", "-e", "-c", block], cwd=study.folder, check=True)
        assert path.read_text(encoding="utf-8") != text_before, file
    assert study.planned(**SMALL, **settings) == set(re.findall(r"`(\w+)`", sentence))


def test_the_changed_threshold_differs_from_the_example(tmp_path):
    _, block, _ = CHANGES["A threshold of an alarm"]
    (tmp_path / "config").symlink_to(ROOT / "config")
    subprocess.run(["bash", "-e", "-c", block], cwd=tmp_path, check=True)
    limits, changed_limits = (
        [rule.get("above") for rule in yaml.safe_load(path.read_text(encoding="utf-8"))["rules"]]
        for path in (ROOT / "config/thresholds.yaml", tmp_path / "thresholds.yaml")
    )
    assert len(limits) == len(changed_limits)
    assert [pair for pair in zip(limits, changed_limits, strict=True) if pair[0] != pair[1]] == [("40%", "30%")]
