"""Which nodes fail more than their use explains?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import NO_CLUSTERS, clustered_columns, detectable_ratio_column
from ttf.engine.contract import REASON, count, name, number, seconds, share, table, truth, whole_seconds, words

_NO_DATES = "components at risk have no dates"
_NO_PLACEMENTS = "components have no placements"
_NONE_SIGNIFICANT = "no node is significant"
_NO_TIME = "no time at risk is known"
_PROXY_OR_UNTESTED = "basis is proxy, or there is no test"
_NO_SHARED = "it has no infrastructure failure of a multi-node attempt that names no node"
_RATE = {"blank": _NO_TIME, "unit": "per 1000 node-days"}

LEMON_NODES = table(
    "lemon_nodes",
    "A node with runs in the window, or a component in service: its failures and those expected from its fleet.",
    "nodes",
    node=name("Node", "Name of the node.", name_kind="node"),
    fleet=words("Fleet", "Nodes of the comparison: those of the same GPU type or system."),
    basis=words("Basis", "How failures are attributed: state, event, proxy (all failures) or component."),
    window_from_s=whole_seconds("Window from", "Start of the window.", blank=_NO_DATES),
    window_to_s=whole_seconds("Window to", "End of the window, exclusive.", blank=_NO_DATES),
    placements=count("Placements", "Attempts that ran on the node.", blank=_NO_PLACEMENTS),
    single_node_failures=count("Failures of single-node attempts", "Single-node attempts that failed.", _NO_PLACEMENTS),
    single_node_failure_rate=share(
        "share of attempts", "Failures divided by attempts.", blank="no single-node attempt"
    ),
    multi_node_failures=count("of multi-node attempts", "Attributed failures of multi-node attempts.", _NO_PLACEMENTS),
    shared_multi_node_failures=count(
        "attributed to no node", "Failed multi-node attempts on the node, attributed to no node.", _NO_PLACEMENTS
    ),
    out_count=count("Outages", "Failures of the component.", blank="not a trace of components"),
    exposure_s=whole_seconds("Time at risk", "Time of its placements in the window, or time in service."),
    failures=count("Failures", "Failures attributed to the node."),
    trials=count("Runs compared", "First runs of a user on a day, if causes are not recorded.", blank="there is none"),
    counted=count("Counted", "Failures that the test counts.", blank=REASON, n="failures"),
    expected=number("Expected", "Expected failures at the rate of the node's fleet.", blank=REASON),
    rate_ratio=number("Ratio", "Rate of the node divided by that of the rest of its fleet.", blank=REASON),
    ci_low=number("Interval from", "Lower bound of the ratio's 95% CI.", blank=REASON),
    ci_high=number("Interval to", "Upper bound of the 95% CI.", blank=REASON),
    p_value=number("p", "One-sided p-value of at least this number of failures.", blank=REASON),
    q_value=number("q", "The p-value adjusted for the number of nodes (Benjamini-Hochberg).", blank=REASON),
    ordinary_expected=number(
        "Expected of ordinary nodes", "Expected failures without the extreme nodes.", blank=_PROXY_OR_UNTESTED
    ),
    ordinary_cv=number("CV", "Coefficient of variation of the rates of ordinary nodes.", blank=_PROXY_OR_UNTESTED),
    p_spread=number("p, spread", "Larger of two p-values: if ordinary nodes are equal, and if they differ.", REASON),
    q_spread=number(
        "q, spread", "P-value that allows ordinary nodes to differ, adjusted for the number of nodes.", REASON
    ),
    lemon=truth("Significant", "Whether q, spread is at most the configured false-discovery rate.", blank=REASON),
    likely_failures=number("Likely failures", "Expected share of unattributed failures (EM algorithm).", _NO_SHARED),
    likely_ratio=number("Likely ratio", "Shrunken rate with likely failures over the fleet's; not a test.", _NO_SHARED),
    incidents=count("Incidents", "Separate incidents among the failures.", blank="not known with this basis"),
    posterior_rate_ratio=number("Shrunken rate ratio", "Posterior mean rate over the fleet's.", _PROXY_OR_UNTESTED),
    posterior_above_3=share("Probability above 3", "Posterior probability of a ratio above 3.", _PROXY_OR_UNTESTED),
    detectable_ratio=detectable_ratio_column("no test, or none could be significant"),
    window_failures=count("Failures in the window", "All failures, including those attributed to no node."),
    attributed_failures=count("Attributed failures", "Failures in the window that are attributed to a node."),
    attributed_share=share("Attributed", "Share of the failures attributed to a node.", "no failure in the window"),
)
LEMON_SUMMARY = table(
    "lemon_summary",
    "All nodes of lemon_nodes.csv together.",
    basis=words("Basis", "How failures are attributed.", blank="there is no node"),
    window_s=whole_seconds("Window", "Length of the window.", blank=_NO_DATES),
    nodes=count("Nodes", "Nodes or components.", unit="nodes"),
    tested=count("Tested", "Nodes with a p-value.", unit="nodes", n="nodes"),
    lemons=count("Significant", "Nodes with excess failures.", unit="nodes", n="tested"),
    share_of_nodes=share(
        "Share of nodes", "Share of the nodes that are significant.", blank=_NONE_SIGNIFICANT, n="nodes"
    ),
    failures=count("Failures", "Failures attributed to a node.", unit="failures", n="nodes"),
    share_of_failures=share(
        "Share of failures", "Share of the failures on significant nodes.", blank=_NONE_SIGNIFICANT, n="failures"
    ),
    counted=count("Counted", "Failures that the tests count.", unit="failures", n="tested"),
    window_failures=count("In the window", "All failures, including those attributed to no node.", unit="failures"),
    unattributed=count("Unattributed", "Failures attributed to no node.", unit="failures", n="window_failures"),
    attributed_share=share(
        "Attributed", "Share of the failures attributed to a node.", "no failure in the window", n="window_failures"
    ),
    detectable_ratio=number(
        "Detectable ratio",
        "Smallest rate ratio that the test detects with 80% power, in the median fleet.",
        blank="no node has a test",
        n="tested",
    ),
)
LEMON_EFFECT = table(
    "lemon_effect",
    "Mean time to failure of the fleet with and without the nodes picked for excess failures.",
    picked_on=words("Picked on", "Part of the window in which the nodes were tested."),
    measured_on=words("measured on", "Part of the window in which the time to failure is measured."),
    nodes=count("Nodes of the fleet", "Nodes with runs in the measured part.", unit="nodes"),
    lemons=count("Nodes", "Nodes picked as significant.", unit="nodes", n="nodes"),
    failures=count("Failures", "Failures of all nodes.", unit="failures"),
    exposure_s=whole_seconds("Time at risk", "Node time of all nodes."),
    mttf_s=seconds("Node time per failure", "Node time per failure, over all nodes.", "no failure, or no time at risk"),
    ci_low_s=seconds("Interval from", "Lower bound of the 95% CI (Garwood).", blank=_NO_TIME),
    ci_high_s=seconds("Interval to", "Upper bound of the 95% CI.", blank="no failure, or no time at risk"),
    **clustered_columns(seconds, "_s", NO_CLUSTERS),
    failures_without=count("without these nodes", "Failures of the nodes that are not picked.", blank=REASON),
    exposure_without_s=whole_seconds("Time at risk without", "Node time of the nodes that are not picked.", REASON),
    mttf_without_s=seconds("Node time per failure", "Node time per failure, without the picked nodes.", REASON),
    ci_low_without_s=seconds("Interval from, without", "Lower bound of the 95% CI.", blank=REASON),
    ci_high_without_s=seconds("Interval to, without", "Upper bound of the 95% CI.", blank=REASON),
    ci_low_clustered_without_s=seconds("Interval from, without", "Lower bound, clustered by node.", blank=NO_CLUSTERS),
    ci_high_clustered_without_s=seconds("Interval to, without", "Upper bound of the 95% CI.", blank=NO_CLUSTERS),
    mttf_ratio=number(
        "Ratio", "Time per failure without the picked nodes, divided by that of all nodes.", blank=REASON
    ),
)

ANALYSIS = Analysis(
    question="Which nodes fail more than their use explains?",
    theme="nodes",
    rank=20,
    needs=["durations_infra"],
    uses=["placements"],
    applies=lambda trace: "placements" in trace.products or (not trace.has_jobs and trace.unit == "node"),
    settings={
        "window_days": "lemons/window_days",
        "infra_window_days": "lemons/infra_window_days",
        "false_discovery": "lemons/false_discovery",
        "fleet_by": lambda trace: trace.strata[0],
    },
    tables=(LEMON_NODES, LEMON_SUMMARY, LEMON_EFFECT),
    charts={"lemons": "lemon_nodes"},
    sections=["lemons"],
    memory_mb=530,
    mb_per_gb={"pai2020": 20, "sacct": 860},
)
