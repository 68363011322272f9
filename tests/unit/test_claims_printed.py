"""Findings of papers without public data: printed counts and shares are compared with each other."""

from pathlib import Path

import pytest
from shipped_claims import CLAIMS
from tested_claims import ELSEWHERE
from ttf.page.replication.scorecard import scorecard

ID_PREFIXES = tuple(prefix for prefix, file in ELSEWHERE.items() if file == Path(__file__).name)
PRINTED_CLAIMS = [claim for claim in CLAIMS if claim["id"].startswith(ID_PREFIXES)]

# What is computed where the printed numbers contradict each other.
SUSPECT = {
    # 148 of 419 are 35.3 % but printed as 30.1; 268 of 419 are 64.0 % but printed as 58.7.
    "llama3-faulty-gpu": 0.353222,
    "llama3-gpu": 0.639618,
    "llama3-shares": 94.9,
    "survey-llama3-gpu": 0.625298,
    "survey-llama3-classes": 95.8,
    "survey-superbench-classes": 8.63,
    "delta-mtbe-by-gb-lower": 0.247916,
    # Of 206 nodes: 20,520 x 206 = 4,227,120 node-hours.
    "delta-v1-node-xid-119": 1978.988764,
    "delta-v1-node-xid-63": 44_496,
    # 849 x 388, 2240 x 259, 7604 x 326 and 28,471 x 1026 GPU-days: 329,412, 580,160, 2,478,904 and 29,211,246.
    "ampere-delta-gpu-hours": 7.905888,
    "ampere-polaris-gpu-hours": 13.92384,
    "ampere-perlmutter-gpu-hours": 59.493696,
    "ampere-perlmutter-double": 0.007231,
    "ampere-summit-double": 0.0000372459,
    "ampere-summit-gpus-double": 0.004355,
}
NOT_COMPUTABLE = {
    *("delta-overprovisioning", "byterobust-ettr", "tpuv4-availability", "tpuv4-jobs-hit", "crusoe-failures"),
}


def test_printed_numbers_that_agree_are_reproduced_and_others_suspect():
    """A quantity that computes something else would not give the printed number."""
    table = scorecard(PRINTED_CLAIMS, {}, lambda *_: None)
    ids = dict(table.group_by("verdict").agg("id").iter_rows())
    assert {name: len(of_verdict) for name, of_verdict in ids.items()} == {
        "suspect in the source": len(SUSPECT),
        "not computable": len(NOT_COMPUTABLE),
        "reproduced": len(PRINTED_CLAIMS) - len(SUSPECT) - len(NOT_COMPUTABLE),
    }
    assert set(ids["not computable"]) == NOT_COMPUTABLE
    suspect = table.filter(verdict="suspect in the source")
    computed = dict(suspect.select("id", "computed").iter_rows())
    assert computed == {id: pytest.approx(answer, rel=1e-9, abs=1e-6) for id, answer in SUSPECT.items()}
    assert not suspect["note"].str.contains("agree").any(), "the computed value contradicts each"
