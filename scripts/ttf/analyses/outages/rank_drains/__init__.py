"""Which nodes go down more than others, what would draining them save, and were such lists right?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered
from ttf.engine.contract import REASON, count, name, number, share, table, text, truth, whole_seconds, words

_NODE_HOURS, _GPU_HOURS = "node-hours", "GPU-hours"
_PER_1000 = "per 1000 node-days"
_RATE = {"blank": REASON, "unit": _PER_1000}
DRAIN_LIST = table(
    "drain_list",
    "A node in service at the end of the watch: what its outages say of the next week. Those listed first.",
    rank=count("Rank", "Listed nodes first, then by what draining would save."),
    node=name("Node", "Its name.", of="node"),
    fleet=words("Fleet", "Nodes it is compared with: those of its group; all."),
    listed=truth("Listed", "Whether q is at most the false-discovery rate of the configuration."),
    saved_gpu_hours=number("GPU-hours saved", "In a week without it, expected.", REASON, _GPU_HOURS),
    saved_node_hours=number("Node-hours saved", "Time down alone, expected.", REASON, _NODE_HOURS),
    idle_gpu_hours=number("GPU-hours idle", "What draining it for a week costs.", REASON, _GPU_HOURS),
    lost_gpu_hours=number("lost at an outage", "By jobs and time down, mean of its fleet.", REASON, _GPU_HOURS),
    up_s=whole_seconds("Time up", "In which it was watched, and not down."),
    outages=count("Outages", "Unplanned outages that began while it was watched.", unit="outages"),
    again_24h=count("again", "Those within 24 h of a repair, which count with the one before.", unit="outages"),
    counted=count("Counted", "The others, by which it is tested.", unit="outages"),
    expected=number("Expected", "Outages counted if its rate were its fleet's.", REASON, "outages"),
    causes=text("Causes", "Of its unplanned outages, the most frequent three.", "the records name none"),
    jobs_lost=count("Jobs lost", "Attempts of which the failure is attributed to it.", REASON, "attempts"),
    excess_failures=truth(
        "Excess failures", "Whether its failures of jobs are significantly more too.", "it is not compared by them"
    ),
    rate=number("Rate", "Outages counted in 1000 days up.", **_RATE),
    fleet_rate=number("Rate of the fleet", "The same of its fleet.", **_RATE),
    rate_ratio=number("Rate ratio", "Of its rate over its fleet's, shrunken.", REASON),
    ci_low=number("Interval from", "Lower end of its 95% CI.", REASON),
    ci_high=number("Interval to", "Upper end of it.", REASON),
    above_1=share("Probability above 1", "That the ratio is above 1.", REASON),
    p_value=number("p", "One-sided, of so many outages or more.", REASON),
    q_value=number("q", "Adjusted for the number of nodes (Benjamini-Hochberg).", REASON),
    detectable_ratio=number(
        "Detectable ratio", "Smallest ratio found with 80% power, of a typical node.", blank="it is not compared"
    ),
)
_NONE_LISTED = "no node is listed, or it is not known of one"
DRAIN_SUMMARY = table(
    "drain_summary",
    "All nodes of drain_list.csv that are compared, and those of them that are listed.",
    nodes=count("Nodes", "Nodes compared.", unit="nodes"),
    listed=count("Listed", "Those of them that are listed.", unit="nodes", n="nodes"),
    excluded=count("Excluded", "Listed nodes whose names stand in drains/exclude.txt.", unit="nodes", n="listed"),
    outages=count("Outages", "Unplanned outages of the nodes compared.", unit="outages", n="nodes"),
    share_of_outages=share("Share", "Of these that listed nodes had.", blank=_NONE_LISTED, n="outages"),
    detectable_ratio=number("Detectable ratio", "Found with 80% power.", "no node is compared", n="nodes"),
    saved_gpu_hours=number("GPU-hours saved", "In a week without the listed.", _NONE_LISTED, _GPU_HOURS, n="listed"),
    saved_node_hours=number("Node-hours saved", "Time down alone.", _NONE_LISTED, _NODE_HOURS, n="listed"),
    idle_gpu_hours=number("GPU-hours idle", "What draining them costs.", _NONE_LISTED, _GPU_HOURS, n="listed"),
)
DRAIN_BACKTEST = table(
    "drain_backtest",
    "A week: how many nodes listed from what was known before it failed in it, and how many others; all: of all weeks.",
    window=words("Week", "Its first day; all: the weeks together."),
    start_s=whole_seconds("From", "Start of the week, on the clock of the trace.", blank="of all weeks"),
    listed=count("Listed", "Listed nodes that were up when it began; all: node-weeks.", unit="nodes"),
    failed=count("Failed", "Those with an unplanned outage in the week.", unit="nodes"),
    share=share("Share", "Failed of listed.", blank=REASON),
    others=count("Others", "Nodes not listed that were up when it began.", unit="nodes"),
    others_failed=count("failed", "Those of them with an unplanned outage in the week.", unit="nodes"),
    base_share=share("Base share", "Failed of the others.", blank=REASON),
    expected=number("Expected", "Of the listed, at the base share of the fleet of each.", blank=REASON, unit="nodes"),
    ratio=number("Ratio", "Failed over expected.", blank=REASON),
    **clustered(number),
)

ANALYSIS = Analysis(
    question="Which nodes go down more than others, what would draining them save, and were such lists right?",
    theme="outages",
    rank=60,
    needs=["outages", "exposure"],
    uses=["nodes", "lives_infra", "lemon_nodes", "occupancy_basis"],
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
