"""Which nodes have excess outages, what would draining them save, and were such lists right?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns
from ttf.engine.contract import REASON, count, name, number, share, table, text, truth, whole_seconds, words

_NODE_HOURS, _GPU_HOURS = "node-hours", "GPU-hours"
_PER_1000 = "per 1000 node-days"
_RATE = {"blank": REASON, "unit": _PER_1000}
DRAIN_LIST = table(
    "drain_list",
    "One row per node in service at the end of the watch: its outages, and the saving if drained for a week.",
    rank=count("Rank", "Listed nodes first, then by the saving."),
    node=name("Node", "Name of the node.", name_kind="node"),
    fleet=words("Fleet", "Nodes it is compared with: its group, or all."),
    listed=truth("Listed", "Whether q is at most the configured false-discovery rate."),
    saved_gpu_hours=number("GPU-hours saved", "Expected saving of a week without it.", REASON, _GPU_HOURS),
    saved_node_hours=number("Node-hours saved", "Expected saving in time down alone.", REASON, _NODE_HOURS),
    idle_gpu_hours=number("GPU-hours idle", "Cost of draining it for a week.", REASON, _GPU_HOURS),
    lost_gpu_hours=number(
        "lost at an outage", "Mean loss of an outage of its fleet: jobs and time down.", REASON, _GPU_HOURS
    ),
    up_s=whole_seconds("Time up", "Time watched and not down."),
    outages=count("Outages", "Unplanned outages that began while the node was watched.", unit="outages"),
    again_24h=count("again", "Outages within 24 h of a repair, which count with the one before.", unit="outages"),
    counted=count("Counted", "All other outages; the test uses these.", unit="outages"),
    expected=number("Expected", "Expected number at the rate of its fleet.", REASON, "outages"),
    causes=text("Causes", "The three most frequent causes of its unplanned outages.", "the records name none"),
    jobs_lost=count("Jobs lost", "Attempts with a failure attributed to the node.", REASON, "attempts"),
    excess_failures=truth(
        "Excess failures", "Whether its job failures are significantly more too.", "it is not compared by them"
    ),
    rate=number("Rate", "Counted outages per 1000 days up.", **_RATE),
    fleet_rate=number("Rate of the fleet", "The rate of its fleet.", **_RATE),
    rate_ratio=number("Rate ratio", "Its rate over its fleet's, shrunken.", REASON),
    ci_low=number("Interval from", "Lower end of its 95% CI.", REASON),
    ci_high=number("Interval to", "Upper end of its 95% CI.", REASON),
    above_1=share("Probability above 1", "Probability that the ratio is above 1.", REASON),
    p_value=number("p", "One-sided p-value of at least this many outages.", REASON),
    q_value=number("q", "p adjusted for the number of nodes (Benjamini-Hochberg).", REASON),
    detectable_ratio=number(
        "Detectable ratio", "Smallest ratio found with 80% power at a typical node.", blank="it is not compared"
    ),
)
_NONE_LISTED = "no node is listed, or it is unknown for one"
DRAIN_SUMMARY = table(
    "drain_summary",
    "One row: the nodes of drain_list.csv that are compared, and those that are listed.",
    nodes=count("Nodes", "Nodes compared.", unit="nodes"),
    listed=count("Listed", "Compared nodes that are listed.", unit="nodes", n="nodes"),
    excluded=count("Excluded", "Listed nodes named in drains/exclude.txt.", unit="nodes", n="listed"),
    outages=count("Outages", "Unplanned outages of the nodes compared.", unit="outages", n="nodes"),
    share_of_outages=share("Share", "Share of these outages on listed nodes.", blank=_NONE_LISTED, n="outages"),
    detectable_ratio=number("Detectable ratio", "Found with 80% power.", "no node is compared", n="nodes"),
    saved_gpu_hours=number(
        "GPU-hours saved", "In a week without the listed nodes.", _NONE_LISTED, _GPU_HOURS, n="listed"
    ),
    saved_node_hours=number(
        "Node-hours saved", "Expected saving in time down alone.", _NONE_LISTED, _NODE_HOURS, n="listed"
    ),
    idle_gpu_hours=number("GPU-hours idle", "Cost of draining them.", _NONE_LISTED, _GPU_HOURS, n="listed"),
)
DRAIN_BACKTEST = table(
    "drain_backtest",
    "One row per week: failures among nodes listed from earlier data, and among other nodes; all: all weeks.",
    window=words("Week", "Its first day; all: the weeks together."),
    start_s=whole_seconds("From", "Start of the week, on the clock of the trace.", blank="of all weeks"),
    listed=count("Listed", "Listed nodes up when the week began; all: node-weeks.", unit="nodes"),
    failed=count("Failed", "Listed nodes with an unplanned outage in the week.", unit="nodes"),
    share=share("Share", "Failed of listed.", blank=REASON),
    others=count("Others", "Unlisted nodes up when the week began.", unit="nodes"),
    others_failed=count("failed", "Unlisted nodes with an unplanned outage in the week.", unit="nodes"),
    base_share=share("Base share", "Failed of the others.", blank=REASON),
    expected=number("Expected", "Of the listed, each at its fleet's base share.", blank=REASON, unit="nodes"),
    ratio=number("Ratio", "Failed over expected.", blank=REASON),
    **clustered_columns(number),
)

ANALYSIS = Analysis(
    question="Which nodes have excess outages, what would draining them save, and were such lists right?",
    theme="outages",
    rank=60,
    needs=["outages", "exposure"],
    uses=["nodes", "durations_infra", "lemon_nodes", "occupancy_basis"],
    applies=lambda trace: trace.has_jobs or trace.unit == "node",
    settings={
        "false_discovery": "lemons/false_discovery",
        "checkpoint_interval_s": "lost_work/checkpoint_interval_s",
        "has_jobs": lambda trace: trace.has_jobs,
    },
    tables=[DRAIN_LIST, DRAIN_SUMMARY, DRAIN_BACKTEST],
    folders=["drains"],
    sections=["drains"],
    memory_mb=400,
    mb_per_gb={"sacct": 300},
)
