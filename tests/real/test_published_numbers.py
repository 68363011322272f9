"""The README's counts of published numbers agree with the real traces."""

from collections import Counter

import polars as pl
import whole_study
import yaml
from study_runs import ROOT

TRACES = ("openb", "titan", "lanl", "infinitehbd")
COMPUTED = ("reproduced", "differs", "suspect in the source")


def test_the_readme_counts_what_real_traces_give(real_study, tmp_path):
    (tmp_path / "results").mkdir()
    for trace in TRACES:
        (tmp_path / "results" / trace).symlink_to(real_study.folder / "results" / trace)
    config = yaml.safe_load((real_study.folder / "afternoon.yaml").read_text())
    config |= {"study": list(TRACES), "registry": {trace: config["registry"][trace] for trace in TRACES}}
    result = whole_study.run(config, tmp_path, only=lambda job: job.script == "score_claims")
    assert result.ok, result
    scored = pl.read_csv(tmp_path / "results/studies/study/scorecard.csv", infer_schema_length=None)
    verdicts = Counter(scored["verdict"])
    computed = scored.filter(pl.col("verdict").is_in(COMPUTED))
    printed_count = computed.filter(~pl.col("trace").is_in(TRACES)).height
    sentence = (
        f"Of {scored.height} published numbers, {computed.height} are computed ({printed_count} from printed numbers "
        f"alone). Of these, {verdicts['reproduced']} are reproduced, {verdicts['differs']} differ, and "
        f"{verdicts['suspect in the source']} contradict their own source"
    )
    assert sentence in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
