"""The README's counts of published numbers agree with the real traces."""

from collections import Counter

import polars as pl
import pytest
from study_runs import ROOT, check_out

TRACES = ("openb", "titan", "lanl", "infinitehbd")
COMPUTED = ("reproduced", "differs", "suspect in the source")


def test_the_readme_counts_what_real_traces_give(shared_data, tmp_path):
    if absent := [trace for trace in TRACES if not (shared_data / trace).is_dir()]:
        pytest.skip(f"not beside the checkout: {', '.join(absent)}")
    study = check_out(tmp_path / "checkout")
    registry = {trace: {"folder": str(shared_data / trace)} for trace in TRACES}
    scorecard = "results/studies/real/scorecard.csv"
    study.snakemake("--", scorecard, one_process=True, study=list(TRACES), name="real", registry=registry)
    scored = pl.read_csv(study.folder / scorecard, infer_schema_length=None)
    verdicts = Counter(scored["verdict"])
    computed = scored.filter(pl.col("verdict").is_in(COMPUTED))
    printed_count = computed.filter(~pl.col("trace").is_in(TRACES)).height
    sentence = (
        f"Of {scored.height} published numbers, {computed.height} are computed ({printed_count} from printed numbers "
        f"alone). Of these, {verdicts['reproduced']} are reproduced, {verdicts['differs']} differ, and "
        f"{verdicts['suspect in the source']} contradict their own source"
    )
    assert sentence in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
