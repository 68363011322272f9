"""`make check` on a finished study: exit codes, edited and outdated results, and what moved between two runs of it."""

import shutil
import subprocess
import sys

import pytest
from study_runs import OWN, ROOT, SMALL, Checkout, copied, environment
from ttf.engine.provenance import seal

METRICS = "results/sample/metrics.json"
MODULE = "scripts/ttf/analyses/factors/correlate/clustered_correlations.py"


def check(study: Checkout, *arguments: str) -> tuple[int, str]:
    """Exit code of the script, as `make` calls it, and all that it printed."""
    done = subprocess.run(
        [sys.executable, "scripts/check_thresholds.py", *arguments],
        cwd=study.folder,
        capture_output=True,
        text=True,
        env=environment(),
    )
    return done.returncode, done.stdout + done.stderr


def rules(study: Checkout, *entries: str) -> str:
    """The file of these rules."""
    file = study.folder / "rules.yaml"
    file.write_text("rules:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries))
    return f"--rules={file.name}"


def test_0_where_no_rule_is_crossed_and_1_where_one_is(study_of_module):
    held = "number: outcomes.failure_share, above: 99 %"
    assert check(study_of_module, rules(study_of_module, held)) == (
        0,
        "1 rule compared with the study: none crossed.\n",
    )
    crossed = "number: outcomes.failure_share, above: 1 %, say: Look here."
    code, said = check(study_of_module, rules(study_of_module, held, crossed), "--study=sample")
    assert code == 1
    first, last = said.splitlines()
    assert first.startswith("sample: outcomes.failure_share is ")
    assert first.endswith(", above 1.0% with the whole interval. Look here.")
    assert last == "2 rules compared with the study: 1 crossed."


def test_a_number_that_this_trace_cannot_have_is_told_of(study_of_module):
    (study_of_module.folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/metrics.md", study_of_module.folder / "docs")
    rule = "number: outages.repair.median_s, above: 12 h"
    missing = "sample: outages.repair.median_s is not available: the records of the trace do not contain it.\n"
    expected = {
        "": (0, f"{missing}1 rule compared with the study: none crossed.\n"),
        ", if_missing: ignore": (0, "1 rule compared with the study: none crossed.\n"),
        ", if_missing: fail": (1, f"{missing}1 rule compared with the study: 1 crossed.\n"),
    }
    for way, answer in expected.items():
        assert check(study_of_module, rules(study_of_module, rule + way)) == answer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what? make check RULES=config/thresholds.yaml, or make check AGAINST=folder"),
        (("--rules=none.yaml",), "none.yaml: there is no such file"),
        (("--rules=config/thresholds.yaml", "--study=simple"), "STUDY=simple: there is no such study here; did you"),
        (("--rules=workflow",), "workflow: "),
        (("--against=none",), "AGAINST=none: there is no such folder"),
        (
            ("--against=scripts",),
            "AGAINST=scripts: contains no results; expected an unpacked archive or a",
        ),
    ],
)
def test_2_where_rules_or_results_cannot_be_used(study_of_module, arguments, message):
    code, said = check(study_of_module, *arguments)
    assert (code, said.count("\n")) == (2, 1), said
    assert said.startswith("error: ")
    assert message in said


def test_no_rule_is_held_against_results_that_were_edited(study):
    rule = rules(study, "number: outcomes.failure_share, above: 1 %")
    then = study.folder / "then"
    shutil.copytree(study.folder / "results", then)
    edited = {then: "then/sample/metrics.json: edited since it was made", study.folder / "results": METRICS}
    for folder, say in edited.items():
        numbers = folder / "sample/metrics.json"
        numbers.write_text(numbers.read_text().replace('"value": 0.', '"value": 0.9', 1))
        code, said = check(study, rule, "--against=then")
        assert (code, said.count("\n")) == (2, 1), said
        assert say in said
    assert "results are edited or out of date, so numbers are not checked" in said
    (study.folder / OWN / "manifest.json").unlink()
    code, said = check(study, rule)
    assert (code, said.count("\n")) == (2, 1)
    assert "there is no manifest yet" in said


def test_what_moved_is_laid_to_the_program_or_to_the_data(finished_study, tmp_path):
    """First the intervals of correlations are made otherwise, then there are fewer tasks, then both at once."""
    study = copied(finished_study, tmp_path)
    rule = rules(study, "number: outcomes.failure_share, above: 1 %")

    def keep(name: str) -> str:
        shutil.copytree(study.folder / "results", study.folder / name)
        return f"--against={name}"

    def of(said: str) -> list[str]:
        return [line for line in said.splitlines() if not line.startswith("  ")]

    first = keep("first")
    assert check(study, first)[1].endswith(" numbers compared, including interval bounds; 0 are new, 0 are gone.\n")
    study.edit(MODULE, "CONFIDENCE = 0.95", "CONFIDENCE = 0.9")
    code, said = check(study, first)
    assert code == 2, "out of date"
    assert f"{MODULE}: changed since" in said
    study.snakemake(one_process=True, **SMALL)
    code, said = check(study, first)
    head, last = of(said)
    assert (code, head.partition(" ")[2]) == (0, "numbers moved because the program changed:")
    moved = {line.split(": ")[1].split(".")[0] for line in said.splitlines() if line.startswith("  ")}
    assert moved == {"correlations"}
    assert "; 0 are new, 0 are gone." in last

    second = keep("second")
    table = study.folder / "data/sample/pai_task_table.csv"
    table.write_bytes(table.read_bytes().replace(b"Terminated", b"Failed", 100))
    study.snakemake(one_process=True, **SMALL)
    heads = of(check(study, second)[1])[:-1]
    assert [head.partition(" ")[2] for head in heads] == ["numbers moved because the data changed:"]
    heads = of(check(study, first)[1])[:-1]
    assert [head.partition(" ")[2] for head in heads] == [
        "numbers moved because the data changed:",
        "numbers moved because the program changed and the data changed; to separate the causes, run the old data "
        "with the new program and configuration:",
    ]
    # The rule says how its own number came about, and counts the others.
    code, said = check(study, rule, first)
    crossed, summary, *others = said.splitlines()
    assert code == 1
    assert " with the whole interval. It was " in crossed
    assert summary == "1 rule compared with the study: 1 crossed."
    assert sum(int(line.split()[0].replace(",", "")) for line in others) > 100


def test_an_archive_with_pseudonyms_tells_what_moved_and_not_why(study_of_module):
    """Names and all, as `make archive` would leave it: no manifest, a sealed list."""
    archive = study_of_module.folder / "archive"
    shutil.copytree(study_of_module.folder / "results", archive / "results")
    (archive / f"results/{OWN.removeprefix('results/')}/manifest.json").unlink()
    numbers = archive / METRICS
    text = numbers.read_text()
    numbers.write_text(text.replace('"value": 2000,', '"value": 1999,', 1))
    seal.seal(archive)
    code, said = check(study_of_module, "--against=archive")
    assert code == 0
    assert "moved for an unknown reason: results published with pseudonyms have no manifest" in said
    numbers.write_text(text)
    code, said = check(study_of_module, "--against=archive")
    assert (code, said.count("\n")) == (2, 1)
    assert f"AGAINST=archive: files changed since publication: {METRICS}: changed" in said
    numbers.write_text('{"a": {"value": 1}}')
    seal.seal(archive)
    assert f"archive/{METRICS}: is not the metrics.json of a study" in check(study_of_module, "--against=archive")[1]
    shutil.rmtree(archive)
