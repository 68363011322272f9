"""Findings of papers without public data: printed counts and shares are compared with each other."""

from pathlib import Path

import polars as pl
import pytest
from claims_tested import ELSEWHERE
from of_claims import CLAIMS
from ttf.page.replication.scorecard import scorecard

ID_PREFIXES = tuple(prefix for prefix, file in ELSEWHERE.items() if file == Path(__file__).name)
PRINTED_CLAIMS = [claim for claim in CLAIMS if claim["id"].startswith(ID_PREFIXES)]

ANSWERS = {
    # 148 of 419 are 35.3 % but printed as 30.1; 268 of 419 are 64.0 % but printed as 58.7.
    "llama3-unplanned": 419,
    "llama3-interruptions": 466,
    "llama3-faulty-gpu": 0.353222,
    "llama3-gpu-memory": 0.171838,
    "llama3-software": 0.128878,
    "llama3-network": 0.083532,
    "llama3-maintenance": 0.076372,
    "llama3-gpu-sram": 0.045346,
    "llama3-gpu-processor": 0.040573,
    **dict.fromkeys(("llama3-nic", "llama3-nccl"), 0.016706),
    **dict.fromkeys(("llama3-silent", "llama3-gpu-thermal"), 0.014320),
    **dict.fromkeys(("llama3-ssd", "llama3-power"), 0.007160),
    **{f"llama3-{part}": 0.004773 for part in ("chassis", "io-board", "dependency", "cpu", "memory")},
    "llama3-shares": 94.9,
    "llama3-gpu": 0.639618,
    "survey-llama3-gpu": 0.625298,
    "survey-llama3-power": 0.083532,
    "survey-llama3-network": 0.100239,
    "survey-llama3-software": 0.133652,
    "survey-acme-software": 0.156893,
    "survey-acme-user": 0.733981,
    "survey-llama3-classes": 95.8,
    "survey-byterobust-classes": 100.0,
    "survey-acme-classes": 100.2,
    "survey-superbench-classes": 8.63,
    # 448 x 895 x 24 and 608 x 146 x 24 hours.
    "delta-gpus": 1056,
    "delta-gpu-hours": 11.753472,
    "delta-mtbe-ratio": 3.191139,
    "crusoe-shares": 100.0,
    "crusoe-share-1": 0.414634,
    "crusoe-share-2": 0.195122,
    "crusoe-share-3": 0.170732,
    "crusoe-share-4": 0.121951,
    "crusoe-share-5": 0.048780,
}
SUSPECT = {
    *("llama3-faulty-gpu", "llama3-gpu", "llama3-shares"),
    *("survey-llama3-gpu", "survey-llama3-classes", "survey-superbench-classes"),
}
NOT_COMPUTABLE = {
    *("delta-overprovisioning", "byterobust-ettr", "tpuv4-availability", "tpuv4-jobs-hit", "crusoe-failures"),
}


@pytest.fixture(scope="module")
def row_by_claim():
    return {row["id"]: row for row in scorecard(PRINTED_CLAIMS, [], lambda *_: None).iter_rows(named=True)}


def test_every_number_is_computed(row_by_claim):
    computed = {id: row["computed"] for id, row in row_by_claim.items() if row["computed"] is not None}
    assert computed == {id: pytest.approx(answer, abs=1e-6) for id, answer in ANSWERS.items()}


def test_verdicts(row_by_claim):
    ids_by_verdict = pl.DataFrame(list(row_by_claim.values())).group_by("verdict").agg("id").iter_rows()
    assert {verdict: set(ids) for verdict, ids in ids_by_verdict} == {
        "suspect in the source": SUSPECT,
        "not computable": NOT_COMPUTABLE,
        "reproduced": set(ANSWERS) - SUSPECT,
    }
    assert not [id for id in SUSPECT if "agree" in row_by_claim[id]["note"]], "the computed value contradicts each"
