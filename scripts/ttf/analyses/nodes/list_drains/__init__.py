"""Which nodes should be drained, and on what evidence?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import count, name, number, table, text, truth, words

_NO_FAILURE_TEST, _NO_OUTAGE_TEST = "its job failures are not compared", "its outages are not compared"
DRAIN_EVIDENCE = table(
    "drain_evidence",
    "A node listed by its job failures or by its outages: the evidence of both, strongest first.",
    node=name("Node", "Name of the node.", name_kind="node"),
    fleet=words("Fleet", "GPU type or group of the nodes with which it is compared."),
    listed_by=words("Listed by", "failures, outages or both: the tests in which it is significant."),
    basis=words("Basis", "How failures are attributed: state, event, proxy (any failure) or component.", "no test"),
    failures=count("Failures", "Failures that the test counts.", _NO_FAILURE_TEST, unit="failures"),
    failures_expected=number("expected", "Failures expected at the rate of its fleet.", _NO_FAILURE_TEST, "failures"),
    failures_q=number("q of failures", "Adjusted p-value of its failures.", _NO_FAILURE_TEST),
    failure_causes=text(
        "Causes", "The three most frequent codes of health events, states or reasons.", "none is named"
    ),
    outages=count("Outages", "Unplanned outages that the test counts.", _NO_OUTAGE_TEST, unit="outages"),
    outages_expected=number("expected", "Outages expected at the rate of its fleet.", _NO_OUTAGE_TEST, "outages"),
    outages_q=number("q of outages", "Adjusted p-value of its outages.", _NO_OUTAGE_TEST),
    outage_causes=text("Causes of outages", "The three most frequent causes.", "the records name none"),
    excluded=truth("In exclude.txt", "False: its name is not safe in a command, so drains/exclude.txt omits it."),
)

ANALYSIS = Analysis(
    question="Which nodes should be drained, and on what evidence?",
    theme="nodes",
    rank=25,
    uses=["lemon_nodes", "drain_list", "durations_infra"],
    applies=lambda trace: (
        "placements" in trace.products
        or (trace.has_jobs and trace.has_exposure)
        # Units of a trace without jobs are compared if they are nodes.
        or (not trace.has_jobs and trace.unit == "node" and "durations_infra" in trace.products)
    ),
    tables=[DRAIN_EVIDENCE],
    folders=["drains"],
    sections=["drain_evidence"],
    memory_mb=200,
    mb_per_gb={"sacct": 60},
)
