from ttf.report.blocks import Numbers
from ttf.report.hazards import hazards
from ttf.report.trace import Trace

tables = hazards


def context(trace: Trace, metrics: Numbers) -> dict:
    named = [key.split(".")[1] for key in metrics if key.startswith("logrank.") and key.endswith(".strata")]
    return {"logrank": named}
