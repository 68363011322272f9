"""Table 7 of Jeon et al. (ATC'19): its sums, and the study's classification of its trials."""

from pathlib import Path

import polars as pl
import pytest
from study_runs import ROOT
from ttf.analyses.causes.classify_failures.compute import taxonomy_table
from ttf.analyses.causes.classify_failures.reason_rules import ATTEMPT_COLUMNS, classify
from ttf.study.configuration.taxonomy import load_taxonomy

TABLE_7 = ROOT.parent / "shared" / "reference" / "philly_table7.csv"
TAXONOMY = load_taxonomy(Path(ROOT / "config" / "taxonomy.yaml"))
SPLIT = {"gpu_1": 1000, "gpu_2_4": 3000, "gpu_gt4": 8000}


@pytest.fixture(scope="module")
def published() -> pl.DataFrame:
    if not TABLE_7.is_file():
        pytest.skip("philly_table7.csv is not beside the checkout")
    return pl.read_csv(TABLE_7)


def test_every_published_reason_is_one_of_ours_with_its_category(published):
    with_reason = published.filter(pl.col("reason") != "No signature")
    categories = {name: ",".join(reason["category"]) for name, reason in TAXONOMY["reasons"].items()}
    assert {name: categories[name] for name in with_reason["reason"]} == dict(
        with_reason.select("reason", "category").iter_rows()
    )


def test_its_trials_give_its_counts(published):
    """Each trial as a failed attempt with the published word in the reason column and a job of the published size."""
    trials = pl.concat(
        published.select("reason", n=name, gpu_milli=pl.lit(gpu_milli)) for name, gpu_milli in SPLIT.items()
    )
    trials = trials.select(pl.col("reason", "gpu_milli").repeat_by("n").explode(empty_as_null=False))
    blank = [pl.lit(None, dtype).alias(name) for name, dtype in ATTEMPT_COLUMNS.items() if name != "gpu_milli"]
    rows = trials.with_columns(blank).with_columns(
        job_id=pl.int_range(pl.len()).cast(pl.String), failure_reason="reason", runtime_s=pl.lit(60)
    )
    table = taxonomy_table(classify(rows.select(*ATTEMPT_COLUMNS).cast(ATTEMPT_COLUMNS), TAXONOMY))
    actual = table.filter(pl.col("by") == "reason").select("reason", "trials", *SPLIT).sort("reason")
    expected = published.with_columns(pl.col("reason").replace("No signature", "unmatched"))
    assert actual.rows() == expected.select("reason", "trial", *SPLIT).sort("reason").rows()
    # ATC'19: 8.2 % of trials have the category infrastructure alone.
    trials_by_category = table.filter(pl.col("by") == "reason").group_by("category").agg(pl.col("trials").sum())
    infrastructure_trials = trials_by_category.filter(pl.col("category") == "IF")["trials"].item()
    assert infrastructure_trials / 39_776 == pytest.approx(0.082, abs=0.0005)
