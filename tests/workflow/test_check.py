"""`ttf check` on a finished study: exit codes, edited or outdated results, and changes between two runs."""

import shutil

import pytest
from study_runs import OWN, PAGE, ROOT, SMALL, Checkout, copy_study
from ttf.engine.provenance import seal

METRICS = "results/sample/metrics.json"
MODULE = "scripts/ttf/analyses/factors/correlate/clustered_correlations.py"


def check(study: Checkout, *arguments: str) -> tuple[int, str]:
    """Run the script like `make`; return its exit code and output."""
    process = study.ttf("check", *arguments)
    return process.returncode, process.stdout + process.stderr


def rules(study: Checkout, *entries: str) -> str:
    file = study.folder / "rules.yaml"
    file.write_text("rules:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries))
    return f"--rules={file.name}"


def test_exit_code_0_if_no_rule_is_crossed_else_1(study_of_module):
    uncrossed_rule = "number: outcomes.failure_share, above: 99 %"
    assert check(study_of_module, rules(study_of_module, uncrossed_rule)) == (
        0,
        "1 rule compared with the study: none crossed.\n",
    )
    crossed_rule = "number: outcomes.failure_share, above: 1 %, say: Look here."
    code, output = check(study_of_module, rules(study_of_module, uncrossed_rule, crossed_rule), "--study=sample")
    assert code == 1
    rule_line, summary = output.splitlines()
    assert rule_line.startswith("sample: outcomes.failure_share is ")
    link = f"Outcomes: {PAGE}#outcomes"
    assert rule_line.endswith(f", above 1.0% with the whole interval. Look here. See {link}")
    assert 'id="outcomes"' in (study_of_module.folder / PAGE).read_text(encoding="utf-8")
    assert summary == "2 rules compared with the study: 1 crossed."


def test_a_number_that_a_trace_cannot_have_is_reported(study_of_module):
    (study_of_module.folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/metrics.md", study_of_module.folder / "docs")
    rule = "number: outages.repair.median_s, above: 12 h"
    missing_note = "sample: outages.repair.median_s is not available: the records of the trace do not contain it.\n"
    expected = {
        "": (0, f"{missing_note}1 rule compared with the study: none crossed.\n"),
        ", if_missing: ignore": (0, "1 rule compared with the study: none crossed.\n"),
        ", if_missing: fail": (1, f"{missing_note}1 rule compared with the study: 1 crossed.\n"),
    }
    for option, code_and_output in expected.items():
        assert check(study_of_module, rules(study_of_module, rule + option)) == code_and_output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what? ttf check --rules config/thresholds.yaml, or ttf check --against folder"),
        (("--rules=none.yaml",), "none.yaml: there is no such file"),
        (("--rules=config/thresholds.yaml", "--study=simple"), "--study simple: there is no such study here; did you"),
        (("--against=none",), "--against none: there is no such folder"),
        (("--against=scripts",), "--against scripts: contains no results; expected an unpacked archive or a"),
    ],
)
def test_exit_code_2_if_rules_or_results_are_unusable(study_of_module, arguments, message):
    code, output = check(study_of_module, *arguments)
    assert (code, output.count("\n")) == (2, 1), output
    assert output.startswith("error: ")
    assert message in output


def test_edited_results_are_not_judged(study):
    rule = rules(study, "number: outcomes.failure_share, above: 1 %")
    baseline = study.folder / "then"
    shutil.copytree(study.folder / "results", baseline)
    edited = {baseline: "then/sample/metrics.json: edited since it was made", study.folder / "results": METRICS}
    for folder, message in edited.items():
        numbers = folder / "sample/metrics.json"
        numbers.write_text(numbers.read_text().replace('"value": 0.', '"value": 0.9', 1))
        code, output = check(study, rule, "--against=then")
        assert (code, output.count("\n")) == (2, 1), output
        assert message in output
    assert "results are edited or out of date, so numbers are not checked" in output
    (study.folder / OWN / "manifest.json").unlink()
    code, output = check(study, rule)
    assert (code, output.count("\n")) == (2, 1)
    assert "there is no manifest yet" in output


def test_changes_are_attributed_to_the_program_or_the_data(finished_study, tmp_path):
    """First change the intervals of correlations, then the tasks, then compare across both changes."""
    study = copy_study(finished_study, tmp_path)
    rule = rules(study, "number: outcomes.failure_share, above: 1 %")

    def copy_results(name: str) -> str:
        shutil.copytree(study.folder / "results", study.folder / name)
        return f"--against={name}"

    def headings(output: str) -> list[str]:
        return [line for line in output.splitlines() if not line.startswith("  ")]

    first_baseline = copy_results("first")
    assert check(study, first_baseline)[1].endswith(
        " numbers compared, including interval bounds; 0 are new, 0 are gone.\n"
    )
    study.edit(MODULE, "CONFIDENCE = 0.95", "CONFIDENCE = 0.9")
    code, output = check(study, first_baseline)
    assert code == 2, "out of date"
    assert f"{MODULE}: changed since" in output
    study.snakemake(one_process=True, **SMALL)
    code, output = check(study, first_baseline)
    # Intervals changed, and no estimate did.
    head, summary = headings(output)
    assert (code, head.partition(" ")[2]) == (0, "numbers moved because the program changed:")
    moved = {line.split("sample: ")[1].split(".")[0] for line in output.splitlines() if line.startswith("  ")}
    assert moved == {"correlations"}
    assert "; 0 are new, 0 are gone." in summary

    second_baseline = copy_results("second")
    table = study.folder / "data/sample/pai_task_table.csv"
    table.write_bytes(table.read_bytes().replace(b"Terminated", b"Failed", 100))
    study.snakemake(one_process=True, **SMALL)
    largest, *heads = headings(check(study, second_baseline)[1])[:-1]
    assert largest == "The largest 10 changes, in margins of error of both intervals:"
    assert [head.partition(" ")[2] for head in heads] == ["numbers moved because the data changed:"]
    (head,) = headings(check(study, first_baseline)[1])[1:-1]
    clause, advice = head.partition(" ")[2].split("; ")
    assert clause == "numbers moved because the program changed and the data changed"
    assert advice == "to separate the causes, run the old data with the new program and configuration:"
    # The rule gives the earlier value of its number.
    code, output = check(study, rule, first_baseline)
    crossed, summary, cause_line = output.splitlines()
    assert code == 1
    assert " with the whole interval. It was " in crossed
    assert summary == "1 rule compared with the study: 1 crossed."
    assert int(cause_line.split()[0].replace(",", "")) > 100


def test_an_archive_with_pseudonyms_shows_changes_without_their_causes(study_of_module):
    """Imitate the output of `ttf archive`: a sealed list instead of a manifest."""
    archive = study_of_module.folder / "archive"
    shutil.copytree(study_of_module.folder / "results", archive / "results")
    (archive / f"results/{OWN.removeprefix('results/')}/manifest.json").unlink()
    numbers = archive / METRICS
    text = numbers.read_text()
    numbers.write_text(text.replace('"value": 2000,', '"value": 1999,', 1))
    seal.write_list(archive)
    code, output = check(study_of_module, "--against=archive")
    assert code == 0
    assert "moved for an unknown reason: results published with pseudonyms have no manifest" in output
    numbers.write_text(text)
    code, output = check(study_of_module, "--against=archive")
    assert (code, output.count("\n")) == (2, 1)
    assert f"--against archive: files changed since publication: {METRICS}: changed" in output
    numbers.write_text('{"a": {"value": 1}}')
    seal.write_list(archive)
    assert f"archive/{METRICS}: is not the metrics.json of a study" in check(study_of_module, "--against=archive")[1]
    shutil.rmtree(archive)
