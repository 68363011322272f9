"""The manifest of a finished study: its content, the findings of `ttf verify`, the output of `ttf explain`."""

import json
import re

import pytest
from metric_cells import wrong_cells
from study_runs import OWN, PAGE, SMALL, Checkout

TABLE = "results/sample/tables/mttf.csv"


def run(study: Checkout, *arguments: str) -> tuple[int, str]:
    """Type `ttf` in the checkout; return exit status and output without the study's name."""
    process = study.ttf(*arguments)
    return process.returncode, process.stdout + process.stderr.removeprefix("study sample\n")


def read_manifest(study: Checkout) -> dict:
    return json.loads((study.folder / f"{OWN}/manifest.json").read_text())


def test_the_manifest_holds_every_product_with_its_inputs(finished_study):
    manifest = read_manifest(finished_study)
    digests = {f"results/{name}": digest for name, digest in finished_study.hashes().items()}
    digests = {
        name: digest for name, digest in digests.items() if not name.endswith((".snakemake_timestamp", ".gitkeep"))
    }
    del digests[f"{OWN}/manifest.json"]
    assert {name: product["sha256"] for name, product in manifest["products"].items()} == digests
    sizes = {name: (finished_study.folder / name).stat().st_size for name in digests}
    assert {name: product["size"] for name, product in manifest["products"].items()} == sizes
    job = manifest["jobs"][manifest["products"][TABLE]["job"]]
    assert (job["rule"], job["script"]) == ("fit_mttf", "scripts/compute.py")
    assert job["parameters"]["settings"]["max_steps"] == 2000
    input_paths = [f"results/sample/{name}" for name in ("jobs.parquet", "durations.parquet", "tables/size_unit.csv")]
    assert job["inputs"] == {path: digests[path] for path in input_paths}
    assert {
        "scripts/compute.py",
        "scripts/ttf/analyses/time_to_failure/fit_mttf/compute.py",
        "scripts/ttf/stats/durations/mttf.py",
    } < job["code"].keys()
    assert {name for name in manifest["raw"] if "machine" not in name} == {
        f"data/sample/pai_{table}_table.csv" for table in ("job", "task", "instance", "sensor", "group_tag")
    }
    assert manifest["packages"]["polars"]
    assert manifest["git"]["revision"] is None
    assert manifest["git"]["reason"]
    text = (finished_study.folder / f"{OWN}/manifest.json").read_text()
    assert str(finished_study.folder) not in text
    assert not re.search(r"20\d\d-\d\d-\d\dT?", text), "a time of the run"


def test_verify_finds_what_was_edited_is_missing_or_is_out_of_date(study):
    code, output = run(study, "verify")
    assert (code, output.count("\n")) == (0, 1), output
    assert "as their rules made them" in output
    with (study.folder / TABLE).open("a") as table:
        table.write("\n")
    (study.folder / "results/sample/figures/still_running.svg").unlink()
    with (study.folder / "scripts/ttf/stats/durations/cox.py").open("a") as module:
        module.write("EDITED = True\n")
    with (study.folder / "data/sample/pai_task_table.csv").open("a") as raw:
        raw.write("\n")
    with (study.folder / "scripts/ttf/analyses/time_to_failure/fit_mttf/compute.py").open("a") as module:
        module.write("# A comment.\n")
    (study.folder / "data/sample/more.csv").write_text("job\n")
    code, output = run(study, "verify")
    assert code == 1
    lines = dict(line.split(": ", 1) for line in output.splitlines())
    assert lines.keys() == {
        TABLE,
        "results/sample/figures/still_running.svg",
        "scripts/ttf/stats/durations/cox.py",
        "data/sample/pai_task_table.csv",
        "data/sample/more.csv",
    }
    assert "edited since fit_mttf made it. Delete it" in lines[TABLE]
    assert "missing" in lines["results/sample/figures/still_running.svg"]
    assert "changed since estimate_hazards used it" in lines["scripts/ttf/stats/durations/cox.py"]
    assert "out of date" in lines["data/sample/pai_task_table.csv"]
    assert "added since the manifest was written" in lines["data/sample/more.csv"]


def test_an_edited_product_is_still_reported_after_another_run(study):
    product = "results/sample/quality/suggested_schema.yaml"  # no job reads it
    with (study.folder / product).open("a") as file:
        file.write("# by hand\n")
    (study.folder / f"{OWN}/manifest.json").unlink()
    progress_lines = study.snakemake(**SMALL).stderr.splitlines()[1:]  # the first names the profile
    assert progress_lines[0] == "1 job to run; the log of each is in logs/."
    assert re.fullmatch(r"    1/1 +\d+\.\d s write_manifest: \d+ products, 1 of them edited.*", progress_lines[1])
    output = " ".join(progress_lines[2:-1])
    assert re.search(r"\d% of ended tasks failed[.,] .* Withheld: ", output), "the bottom line and what to do"
    assert re.fullmatch(r"The report: results/studies/sample/report/index\.html \(\d+ s\)", progress_lines[-1])
    assert read_manifest(study)["products"][product]["edited"]
    code, output = run(study, "verify")
    assert (code, output) == (1, f"{product}: edited since describe_tables made it. Delete it and run `ttf report`.\n")


def test_nothing_to_do_is_said_and_the_report_named(finished_study):
    progress_lines = finished_study.snakemake(**SMALL).stderr.splitlines()[1:]
    assert progress_lines == [
        "Nothing to do: every product is up to date.",
        "The report: results/studies/sample/report/index.html",
    ]


# Down to the raw files; a job is printed at its first occurrence.
CHAIN = ["fit_mttf", "derive_runtimes", "ingest", "unpack_sample_pai2020"]


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        ([f"{TABLE}"], CHAIN),
        (["--key=mttf.exposure_s", "--verbose"], CHAIN),
        ([f"{PAGE}"], ["render_page", "write_page_source", "summarise", *CHAIN]),
    ],
    ids=["table", "number", "page"],
)
def test_explain_goes_back_to_the_raw_files(finished_study, arguments, rules):
    code, output = run(finished_study, "explain", *arguments)
    assert code == 0, output
    named_rules = re.findall(r"^ *by (\w+): ", output, re.MULTILINE)
    assert set(rules) <= set(named_rules)
    assert len(named_rules) == len(set(named_rules)), "a job is printed once"
    assert re.search(
        r"^ +from data/sample/pai_task_table\.csv, [\d,]+ bytes, sha256 \w{12}, raw$", output, re.MULTILINE
    )
    if arguments == [f"{TABLE}"]:
        assert named_rules == [CHAIN[0], "derive_durations", *CHAIN[1:]]
        depths = [len(re.search(rf"^( *)by {rule}: ", output, re.MULTILINE)[1]) for rule in CHAIN[:3]]
        assert depths == sorted(set(depths)), "each step of the chain is indented deeper than the previous one"


def test_a_number_is_explained_in_ten_lines(finished_study):
    code, output = run(finished_study, "explain", "--key=mttf.exposure_s")
    metrics = "results/sample/metrics.json"
    number = json.loads((finished_study.folder / metrics).read_text())["mttf.exposure_s"]
    assert code == 0 and len(output.splitlines()) <= 10
    assert output.startswith(f"mttf.exposure_s = {number['value']} s (n = {number['n']:,}), in {metrics}\n")
    assert f"is the cell exposure_s in line {number['line']} of {TABLE}" in output
    assert "made by fit_mttf" in output and "pai_group_tag_table.csv" in output


def test_every_number_is_the_cell_that_it_names(finished_study):
    assert wrong_cells(finished_study.folder / "results/sample") == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["results/sample/tables/mtf.csv"], "Did you mean results/sample/tables/mttf.csv"),
        (["results/sample/metrics.json", "--key=mttf.exposur_s"], "Did you mean mttf.exposure_s"),
        ([f"{TABLE}", "--key=mttf_s"], "holds no numbers by key"),
        (["--key=a\n\u202eb"], r"no number 'a\n\u202eb'."),
    ],
)
def test_a_wrong_name_gets_the_closest_match(finished_study, arguments, hint):
    code, output = run(finished_study, "explain", *arguments)
    assert code == 1
    assert hint in output
