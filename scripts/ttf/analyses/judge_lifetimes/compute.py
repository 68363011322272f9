from ttf.inputs import Inputs
from ttf.stats.verdict import lifetime_verdict

CURVES = ("event", "stratum_by", "stratum", "time_s", "at_risk", "events", "survival")


def compute(given: Inputs) -> dict:
    return {"lifetime_verdict": lifetime_verdict(given["lifetime_models"], given.scan("survival_curves", CURVES))}
