"""On which nodes does more fail than their use explains?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import NO_CLUSTERS, clustered
from ttf.engine.contract import REASON, count, name, number, seconds, share, table, truth, whole_seconds, words

_DATED = "components at risk bear no dates"
_PLACED = "components have no placements"
_NO_LEMON = "no node is significant"
_NO_TIME = "no time at risk is known"
_PROXY_OR_UNTESTED = "basis is proxy, or there is no test"
_NAMED = "no failure of several nodes that names none is attributed to infrastructure on it"
_RATE = {"blank": _NO_TIME, "unit": "per 1000 node-days"}

LEMON_NODES = table(
    "lemon_nodes",
    "A node with runs in the window, or a component in service: its failures against those expected of its fleet.",
    "nodes",
    node=name("Node", "Name of the node.", of="node"),
    fleet=words("Fleet", "Nodes it is compared with: those of its GPU type or system."),
    basis=words("Basis", "How failures are attributed: state, event, proxy (all failures) or component."),
    window_from_s=whole_seconds("Window from", "First moment of the window.", blank=_DATED),
    window_to_s=whole_seconds("Window to", "The moment after its last.", blank=_DATED),
    placements=count("Placements", "Attempts that ran on the node.", blank=_PLACED),
    single_node_placements=count("Single-node attempts", "Those of them on no other node.", blank=_PLACED),
    single_node_failures=count("Failures of single-node attempts", "Failures of these.", blank=_PLACED),
    single_node_failure_rate=share(
        "share of attempts", "Share of its single-node attempts that failed.", blank="no single-node attempt"
    ),
    multi_node_failures=count("of multi-node attempts", "Those attributed to this node.", blank=_PLACED),
    shared_multi_node_failures=count("attributed to no node", "Failed multi-node attempts it had.", blank=_PLACED),
    out_count=count("Outages", "Failures of the component.", blank="not a trace of components"),
    exposure_s=whole_seconds("Time at risk", "Time of its placements in the window, or its time in service."),
    failures=count("Failures", "Failures attributed to the node."),
    failures_per_1000_node_days=number("Rate", "Failures per 1000 days at risk.", **_RATE),
    fleet_failures_per_1000_node_days=number("Rate of the fleet", "The same of its fleet.", **_RATE),
    trials=count("Runs compared", "With basis proxy: first runs of a user on a day.", blank="there is none"),
    counted=count("Counted", "Failures that the test counts.", blank=REASON, n="failures"),
    expected=number("Expected", "Failures expected of its fleet at the same use.", blank=REASON),
    rate_ratio=number("Ratio", "Failure rate over the rest of its fleet's, or counted over expected.", blank=REASON),
    ci_low=number("Interval from", "Lower end of the ratio's 95% CI.", blank=REASON),
    ci_high=number("Interval to", "Its upper end.", blank=REASON),
    p_value=number("p", "One-sided p-value of so many failures or more.", blank=REASON),
    q_value=number("q", "The p-value adjusted for the number of nodes (Benjamini-Hochberg).", blank=REASON),
    ordinary_expected=number(
        "Expected of ordinary nodes", "Without the nodes that stand out.", blank=_PROXY_OR_UNTESTED
    ),
    ordinary_cv=number("CV", "Coefficient of variation of the rates of ordinary nodes.", blank=_PROXY_OR_UNTESTED),
    p_spread=number("p, spread", "The larger of p and that against ordinary nodes, which differ.", blank=REASON),
    q_spread=number("q, spread", "The same adjusted for the number of nodes.", blank=REASON),
    lemon=truth("Significant", "Whether this q is at most the configured false-discovery rate.", blank=REASON),
    likely_failures=number("Likely failures", "Of those attributed to no node, by EM over their nodes.", blank=_NAMED),
    likely_ratio=number("Likely ratio", "Shrunken rate over the fleet's with them: ranked, not proven.", blank=_NAMED),
    incidents=count("Incidents", "Its failures that are incidents of their own.", blank="not known with this basis"),
    posterior_rate_ratio=number(
        "Shrunken rate ratio", "Posterior mean of its rate over its fleet's.", blank=_PROXY_OR_UNTESTED
    ),
    posterior_above_3=share("Probability above 3", "That this ratio is above 3.", blank=_PROXY_OR_UNTESTED),
    detectable_ratio=number(
        "Detectable ratio", "Smallest ratio found with 80% power.", blank="no test, or none could be significant"
    ),
    window_failures=count("Failures in the window", "Of all nodes, those attributed to none among them."),
    attributed_failures=count("Attributed failures", "Those of them that are attributed to a node."),
    attributed_share=share("Attributed", "Share of the failures in the window.", blank="no failure in the window"),
)
LEMON_SUMMARY = table(
    "lemon_summary",
    "All nodes of lemon_nodes.csv together.",
    basis=words("Basis", "How failures are attributed.", blank="there is no node"),
    window_s=whole_seconds("Window", "Length of the window.", blank=_DATED),
    nodes=count("Nodes", "Nodes or components.", unit="nodes"),
    tested=count("Tested", "Those of them with a p-value.", unit="nodes", n="nodes"),
    lemons=count("Significant", "Nodes with excess failures.", unit="nodes", n="tested"),
    share_of_nodes=share("Share of nodes", "Significant nodes over all.", blank=_NO_LEMON, n="nodes"),
    failures=count("Failures", "Failures attributed to a node.", unit="failures", n="nodes"),
    share_of_failures=share("Share of failures", "Of these on significant nodes.", blank=_NO_LEMON, n="failures"),
    counted=count("Counted", "Failures that the tests count.", unit="failures", n="tested"),
    window_failures=count("In the window", "Of all nodes, those attributed to none among them.", unit="failures"),
    unattributed=count("Unattributed", "Those of them attributed to no node.", unit="failures", n="window_failures"),
    attributed_share=share("Attributed", "Of them.", blank="no failure in the window", n="window_failures"),
    detectable_ratio=number(
        "Detectable ratio", "Found with 80% power on the median fleet.", blank="no node has a test", n="tested"
    ),
)
LEMON_EFFECT = table(
    "lemon_effect",
    "The fleet's mean time to failure with and without the nodes of excess failures that were picked.",
    picked_on=words("Picked on", "Part of the window in which the nodes were tested."),
    measured_on=words("measured on", "Part of the window in which the time to failure is measured."),
    nodes=count("Nodes of the fleet", "Nodes with runs in the part measured.", unit="nodes"),
    lemons=count("Nodes", "Nodes picked.", unit="nodes", n="nodes"),
    failures=count("Failures", "Failures of all nodes.", unit="failures"),
    exposure_s=whole_seconds("Time at risk", "Node time of all nodes."),
    mttf_s=seconds("Node time per failure", "Of all nodes.", blank="no failure, or no time at risk"),
    ci_low_s=seconds("Interval from", "Lower end of its 95% CI (Garwood).", blank=_NO_TIME),
    ci_high_s=seconds("Interval to", "Its upper end.", blank="no failure, or no time at risk"),
    **clustered(seconds, "_s", NO_CLUSTERS),
    failures_without=count("without these nodes", "Failures of the other nodes.", blank=REASON),
    exposure_without_s=whole_seconds("Time at risk without", "Node time of the other nodes.", blank=REASON),
    mttf_without_s=seconds("Node time per failure", "Of the other nodes.", blank=REASON),
    ci_low_without_s=seconds("Interval from, without", "Lower end of its 95% CI.", blank=REASON),
    ci_high_without_s=seconds("Interval to, without", "Its upper end.", blank=REASON),
    ci_low_clustered_without_s=seconds("Interval from, without", "The same, clustered by node.", blank=NO_CLUSTERS),
    ci_high_clustered_without_s=seconds("Interval to, without", "Its upper end.", blank=NO_CLUSTERS),
    mttf_ratio=number("Ratio", "Time per failure without over with these nodes.", blank=REASON),
)

ANALYSIS = Analysis(
    question="On which nodes does more fail than their use explains?",
    theme="nodes",
    rank=20,
    needs=["lives_infra"],
    uses=["placements"],
    applies=lambda trace: "placements" in trace.products or (not trace.has_jobs and trace.unit == "node"),
    settings={
        "window_days": "lemons/window_days",
        "infra_window_days": "lemons/infra_window_days",
        "false_discovery": "lemons/false_discovery",
        "fleet_by": lambda trace: trace.strata[0],
    },
    keeps_freed_memory=True,
    tables=(LEMON_NODES, LEMON_SUMMARY, LEMON_EFFECT),
    charts={"lemons": "lemon_nodes"},
    sections=["lemons"],
    memory_mb=530,
    mb_per_gb={"pai2020": 20, "sacct": 860},
)
