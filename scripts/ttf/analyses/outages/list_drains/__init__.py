"""Which nodes should be drained, on what evidence, what would that save, and were such lists right?"""

from ttf.analyses.declaration import Analysis, price_settings
from ttf.engine.columns import clustered_columns, detectable_ratio_column
from ttf.engine.contract import REASON, count, name, number, share, table, text, truth, whole_seconds, words

_NODE_HOURS, _GPU_HOURS = "node-hours", "GPU-hours"
_PER_1000 = "per 1000 node-days"
_RATE = {"blank": REASON, "unit": _PER_1000}
_NO_FAILURE_TEST, _NO_OUTAGE_TEST = "its job failures are not compared", "its outages are not compared"
DRAIN_LIST = table(
    "drain_list",
    "A node in service at the end of the watch, or with excess job failures: the evidence, and the saving of a week if "
    "drained. Listed nodes first, those of both tests before others, then by q; other nodes by the saving.",
    node=name("Node", "Name of the node.", name_kind="node"),
    fleet=words("Fleet", "Nodes with which its outages, or else failures, are compared: its group, GPU type, or all."),
    listed_by=words(
        "Listed by", "failures, outages or both: the tests in which it is significant.", "it is not listed"
    ),
    basis=words("Basis", "How failures are attributed: state, event or component.", _NO_FAILURE_TEST),
    failure_fleet=words(
        "Fleet of failures", "GPU type or group of the nodes with which its failures are compared.", _NO_FAILURE_TEST
    ),
    failures=count("Failures", "Failures that the test counts.", _NO_FAILURE_TEST, unit="failures"),
    failures_expected=number("expected", "Failures expected at the rate of its fleet.", _NO_FAILURE_TEST, "failures"),
    failures_q=number("q of failures", "Adjusted p-value of its failures.", _NO_FAILURE_TEST),
    failure_causes=text(
        "Causes", "The three most frequent codes of health events, states or reasons.", "none is named"
    ),
    listed=truth(
        "Excess outages", "Whether q is at most the false-discovery rate; without jobs, in lemon_nodes.csv too."
    ),
    saved_gpu_hours=number("GPU-hours saved", "Expected saving per week if the node is drained.", REASON, _GPU_HOURS),
    saved_node_hours=number("Node-hours saved", "Expected saving of downtime per week.", REASON, _NODE_HOURS),
    idle_gpu_hours=number("GPU-hours idle", "GPU-hours idle if the node is drained for a week.", REASON, _GPU_HOURS),
    lost_gpu_hours=number("GPU-hours per outage", "Mean GPU-hours that an outage costs its fleet.", REASON, _GPU_HOURS),
    up_s=whole_seconds("Time up", "Observed time in which the node was up.", _NO_OUTAGE_TEST),
    outages=count(
        "Outages", "Unplanned outages that began while the node was observed.", _NO_OUTAGE_TEST, unit="outages"
    ),
    again_24h=count(
        "again", "Outages within 24 h of a repair; the test does not count them.", _NO_OUTAGE_TEST, unit="outages"
    ),
    counted=count("Outages counted", "Outages that the test counts.", _NO_OUTAGE_TEST, unit="outages"),
    expected=number("Expected", "Expected number at the rate of the node's fleet.", REASON, "outages"),
    causes=text(
        "Causes of outages", "The three most frequent causes of unplanned outages of the node.", "the records name none"
    ),
    jobs_lost=count("Jobs ended", "Attempts with a failure attributed to the node.", REASON, "attempts"),
    rate=number("Rate", "Counted outages per 1000 days up.", **_RATE),
    fleet_rate=number("Rate of the fleet", "Rate of the node's fleet.", **_RATE),
    rate_ratio=number("Rate ratio", "Rate of the node divided by that of its fleet, shrunken.", REASON),
    ci_low=number("Interval from", "Lower bound of the 95% CI.", REASON),
    ci_high=number("Interval to", "Upper bound of the 95% CI.", REASON),
    above_1=share("Probability above 1", "Probability that the ratio is above 1.", REASON),
    p_value=number("p", "Larger of two one-sided p-values: if ordinary nodes are equal, and if they differ.", REASON),
    q_value=number("q of outages", "p adjusted for the number of nodes (Benjamini-Hochberg).", REASON),
    ordinary_cv=number("CV", "Coefficient of variation of the rates of ordinary nodes.", REASON),
    detectable_ratio=detectable_ratio_column("it is not compared"),
)
_NONE_LISTED = "no node is listed, or it is unknown for one"
DRAIN_SUMMARY = table(
    "drain_summary",
    "One row: the nodes whose outages are compared, and those with excess outages; none without records of outages.",
    nodes=count("Nodes", "Nodes compared.", unit="nodes"),
    listed=count("Listed", "Listed nodes.", unit="nodes", n="nodes"),
    excluded=count("Excluded", "Listed nodes in drains/exclude.txt.", unit="nodes", n="listed"),
    outages=count("Outages", "Unplanned outages of the nodes compared.", unit="outages", n="nodes"),
    share_of_outages=share("Share", "Share of the unplanned outages that hit listed nodes.", _NONE_LISTED, n="outages"),
    ordinary_cv=number(
        "CV", "Coefficient of variation of the rates of ordinary nodes.", "no node is compared", n="nodes"
    ),
    detectable_ratio=detectable_ratio_column("no node is compared", n="nodes"),
    saved_gpu_hours=number(
        "GPU-hours saved", "GPU-hours saved per week if listed nodes are drained.", _NONE_LISTED, _GPU_HOURS, n="listed"
    ),
    saved_cost=number(
        "Cost saved", "Price of the GPU-hours.", "no price is set, or none saved", "currency", n="listed"
    ),
    saved_node_hours=number("Node-hours saved", "Downtime saved per week.", _NONE_LISTED, _NODE_HOURS, n="listed"),
    idle_gpu_hours=number(
        "GPU-hours idle", "GPU-hours idle if listed nodes are drained for a week.", _NONE_LISTED, _GPU_HOURS, n="listed"
    ),
)
DRAIN_BACKTEST = table(
    "drain_backtest",
    "One row per week: failures among nodes listed from earlier data, and among other nodes; all: all weeks.",
    window=words("Week", "First day of the week, or all."),
    start_s=whole_seconds("From", "Start of the week, on the clock of the trace.", "of all weeks"),
    listed=count("Listed", "Listed nodes that were up when the week began.", unit="nodes"),
    failed=count("Failed", "Listed nodes with an unplanned outage in the week.", unit="nodes"),
    share=share("Share", "Share of listed nodes with an unplanned outage.", REASON),
    others=count("Others", "Unlisted nodes that were up when the week began.", unit="nodes"),
    others_failed=count("failed", "Unlisted nodes with an unplanned outage in the week.", unit="nodes"),
    base_share=share("Base share", "Share of unlisted nodes with an unplanned outage.", REASON),
    expected=number("Expected", "Listed nodes expected to fail at their fleets' base share.", REASON, unit="nodes"),
    ratio=number("Ratio", "Number of failed listed nodes divided by the expected number.", REASON),
    **clustered_columns(number),
)

ANALYSIS = Analysis(
    question="Which nodes should be drained, on what evidence, what would that save, and were such lists right?",
    theme="outages",
    rank=60,
    uses=["outages", "exposure", "nodes", "durations_infra", "lemon_nodes", "occupancy_basis"],
    applies=lambda trace: (
        "placements" in trace.products
        # Units of a trace without jobs are compared if they are nodes.
        or ((trace.has_jobs or trace.unit == "node") and trace.has_exposure)
        or (not trace.has_jobs and trace.unit == "node" and "durations_infra" in trace.products)
    ),
    settings={
        "false_discovery": "lemons/false_discovery",
        "checkpoint_interval_s": "lost_work/checkpoint_interval_s",
        "has_jobs": lambda trace: trace.has_jobs,
        "prices": price_settings,
    },
    tables=[DRAIN_LIST, DRAIN_SUMMARY, DRAIN_BACKTEST],
    folders=["drains"],
    sections=["nodes/drain_evidence", "drains"],
    memory_mb=400,
    mb_per_gb={"pai2020": 10, "sacct": 300},
)
