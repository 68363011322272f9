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
    # Of the A100: 8863 + 3857 + 1922 + 77 + 10 off the bus + 25 + 67 in memory are 14,821.
    "delta-a100-mmu-share": 0.598003,
    "delta-a100-gsp-share": 0.260239,
    "delta-a100-nvlink-share": 0.129681,
    "delta-a100-pmu-share": 0.005195,
    "delta-a100-memory-share": 0.001687,
    "delta-a100-remapped-share": 0.004521,
    "delta-a100-off-bus-share": 0.000675,
    # Of the H100: 1737 + 3 + 58 + 23 in memory.
    "delta-h100-errors": 1821,
    "delta-h100-mmu-share": 0.953871,
    "delta-h100-gsp-share": 0.001647,
    "delta-h100-memory-share": 0.031851,
    "delta-h100-remapped-share": 0.012630,
    "delta-a100-uncorrectable": 34,
    **dict.fromkeys(("delta-h100-uncorrectable", "delta-h100-remaps"), 24),
    "delta-h100-softened": 0.916667,
    # 448 x 895 x 24 / 34 and 608 x 146 x 24 / 24 = 608 x 146.
    "delta-a100-mtbe": 283_030.588235,
    **dict.fromkeys(("delta-h100-mtbe", "delta-h100-mtbe-by-gb"), 88_768),
    "delta-a100-mtbe-by-gb": 283_270.65,
    "delta-mtbe-by-gb-lower": 0.247916,
    "delta-a100-gsp-mtbe": 5.569095,
    "delta-h100-gsp-mtbe": 1168,
    "delta-a100-system-mtbe": 1.449295,
    "delta-h100-system-mtbe": 1.924217,
    "delta-spare-gpus": 0.050987,
    "delta-v1-gpus": 1168,
    # 855 x 24 = 20,520 hours.
    "delta-v1-xid-95": 0.527439,
    "delta-v1-xid-31": 1.087095,
    "delta-v1-xid-74": 6.869769,
    "delta-v1-xid-119": 9.606742,
    "delta-v1-xid-63": 216,
    "delta-v1-xid-64": 586.285714,
    "delta-v1-xid-48": 641.25,
    "delta-v1-frequent": 62_904,
    "delta-v1-frequent-share": 0.994482,
    # Of 206 nodes: 20,520 x 206 = 4,227,120 node-hours.
    "delta-v1-memory-mtbe": 26_093.333333,
    "delta-v1-hardware-ratio": 32.61625,
    "delta-v1-node-xid-119": 1978.988764,
    "delta-v1-node-xid-63": 44_496,
    "delta-v1-job-sizes": 100,
    "ampere-gpus": 10_693,
    "ampere-gpu-hours": 67.77,
    # 849 x 388, 2240 x 259, 7604 x 326 and 28,471 x 1026 GPU-days: 329,412, 580,160, 2,478,904 and 29,211,246.
    "ampere-delta-gpu-hours": 7.905888,
    "ampere-polaris-gpu-hours": 13.92384,
    "ampere-perlmutter-gpu-hours": 59.493696,
    "ampere-delta-single": 0.528020,
    "ampere-perlmutter-single": 2.828221,
    "ampere-delta-double": 0.0000273214,
    "ampere-polaris-double": 0.068666,
    "ampere-perlmutter-double": 0.007231,
    "ampere-summit-double": 0.0000372459,
    "ampere-delta-gpus-single": 0.050648,
    "ampere-perlmutter-gpus-single": 0.045239,
    "ampere-summit-gpus-double": 0.004355,
    "ampere-errors": 7_242_596,
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
    *("delta-mtbe-by-gb-lower", "delta-v1-node-xid-119", "delta-v1-node-xid-63"),
    *(f"ampere-{system}-gpu-hours" for system in ("delta", "polaris", "perlmutter")),
    *("ampere-perlmutter-double", "ampere-summit-double", "ampere-summit-gpus-double"),
}
NOT_COMPUTABLE = {
    *("delta-overprovisioning", "byterobust-ettr", "tpuv4-availability", "tpuv4-jobs-hit", "crusoe-failures"),
}


@pytest.fixture(scope="module")
def row_by_claim():
    return {row["id"]: row for row in scorecard(PRINTED_CLAIMS, [], lambda *_: None).iter_rows(named=True)}


def test_every_number_is_computed(row_by_claim):
    computed = {id: row["computed"] for id, row in row_by_claim.items() if row["computed"] is not None}
    assert computed == {id: pytest.approx(answer, rel=1e-9, abs=1e-6) for id, answer in ANSWERS.items()}


def test_verdicts(row_by_claim):
    ids_by_verdict = pl.DataFrame(list(row_by_claim.values())).group_by("verdict").agg("id").iter_rows()
    assert {verdict: set(ids) for verdict, ids in ids_by_verdict} == {
        "suspect in the source": SUSPECT,
        "not computable": NOT_COMPUTABLE,
        "reproduced": set(ANSWERS) - SUSPECT,
    }
    assert not [id for id in SUSPECT if "agree" in row_by_claim[id]["note"]], "the computed value contradicts each"
