"""Where the quantity of each published finding is tested on a micro-trace, other than in unit/test_scorecard.py."""

# Beginnings of ids -> the file of tests under tests/unit/ with an `ANSWERS` that has every such id.
ELSEWHERE = {
    "philly-gpu-use-": "test_claims_use.py",
    "philly-notebook-gpu-use-": "test_claims_use.py",
    "philly-notebook-dedicated-": "test_claims_use.py",
    "philly-notebook-host-": "test_claims_use.py",
    "philly-dedicated-": "test_claims_use.py",
    "philly-host-": "test_claims_use.py",
}


def stands_elsewhere(claim_id: str) -> bool:
    return claim_id.startswith(tuple(ELSEWHERE))
