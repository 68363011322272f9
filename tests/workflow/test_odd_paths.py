"""The checkout, the folder where the command is typed and the raw tables may lie at any path."""

from study_runs import Checkout, check_out, pods, write_pods


def test_braces_blanks_and_quotes_in_every_path(tmp_path):
    """A checkout on a path with {a} ended in a NameError, one elsewhere in a WildcardError."""
    root = check_out(tmp_path / "x {a} ü'b" / "<c>").folder
    study = Checkout(tmp_path / 'w {d} "e"')
    given = write_pods(study, pods(20))
    (study.folder / "raw").rename(study.folder / "raw {f} <g>")
    given["registry"]["mine"] |= {"title": "Of {trace} and <b>", "folder": "raw {f} <g>/mine"}
    snakefile = ("--snakefile", str(root / "Snakefile"))
    planned = study.planned(*snakefile, "--", "all", "archive_results", **given)
    assert {"ingest", "score_claims", "write_page_source", "archive_results"} <= planned
    config, account = "results/studies/mine/config.yaml", "results/mine/quality/row_account.csv"
    study.snakemake(*snakefile, config, account, one_process=True, **given)
    assert "Of {trace} and <b>" in (study.folder / config).read_text()
    assert (study.folder / account).read_text().splitlines()[1:] == ["pods,20,20,0"]
