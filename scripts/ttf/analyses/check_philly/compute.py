from ttf.formats.philly.derive import zone_evidence
from ttf.inputs import Inputs
from ttf.traces.philly_checks import listed_machines


def compute(given: Inputs) -> dict:
    return {
        "zone_evidence": zone_evidence(given.read("jobs")),
        "listed_machines": listed_machines(given.read("nodes")),
    }
