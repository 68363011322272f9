"""The checkout, the working folder and the raw tables may be at any path."""

from study_runs import Checkout, check_out, pods, write_pods


def test_braces_blanks_and_quotes_in_every_path(tmp_path):
    """Snakemake formats braces in paths, which raises NameError or WildcardError if they are not escaped."""
    root = check_out(tmp_path / "x {a} ü'b" / "<c>").folder
    study = Checkout(tmp_path / 'w {d} "e"')
    config = write_pods(study, pods(20))
    (study.folder / "raw").rename(study.folder / "raw {f} <g>")
    config["registry"]["mine"] |= {"title": "Of {trace} and <b>", "folder": "raw {f} <g>/mine"}
    snakefile = ("--snakefile", str(root / "Snakefile"))
    planned = study.planned(*snakefile, "--", "all", "archive_results", **config)
    assert {"ingest", "score_claims", "write_page_source", "archive_results"} <= planned
    config_file, account = "results/studies/mine/config.yaml", "results/mine/quality/row_account.csv"
    study.snakemake(*snakefile, config_file, account, one_process=True, **config)
    assert "Of {trace} and <b>" in (study.folder / config_file).read_text()
    assert (study.folder / account).read_text().splitlines()[1:] == ["pods,20,20,0"]
