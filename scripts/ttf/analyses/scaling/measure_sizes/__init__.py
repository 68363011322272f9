"""What is the mean time to failure at every job size, and the failure rate of a node?"""

from functools import partial

from ttf.analyses.declaration import Analysis, unit_block_days
from ttf.engine.columns import BASIS, MTTF, NO_CLUSTERS, SUMMARY, clustered_columns
from ttf.engine.contract import REASON, count, number, reason, seconds, table, truth, whole_seconds, words

_PER_1000 = {"unit": "per 1000 node-days"}
_PER_DAY = {"unit": "per node-day"}
_NOT_PROJECTED = "the size is above the projection limit, or the rate of a node has no estimate above 0"
_UNTESTED = "there is no failure, or no time at risk in this size or in the other sizes"
_FEW_POOLS = "there are fewer than three pools of sizes, or the column reason says why"

MTTF_BY_GPUS = table(
    "mttf_by_gpus",
    "A job size in whole nodes: its mean time to failure, measured and projected from the rate of a node.",
    gpus_low=count("GPUs from", "Fewest GPUs of a run of this size.", REASON, "GPUs"),
    gpus_high=count("GPUs to", "Most GPUs of a run of this size.", REASON, "GPUs"),
    jobs=count("Runs", "Runs of this size with a known duration, or components at risk.", unit="attempts"),
    failures=count(
        "Failures", "Runs that infrastructure failures ended, by the rule in the column basis.", REASON, "failures"
    ),
    exposure_s=whole_seconds("Time at risk", "Sum of the durations.", REASON),
    mttf_s=seconds("Measured", "Time at risk divided by failures.", REASON),
    ci_low_s=seconds("from", "Lower bound of Garwood's interval; one-sided if there is no failure.", REASON),
    ci_high_s=seconds("to", "Upper bound of Garwood's interval.", REASON),
    **clustered_columns(seconds, "_s", NO_CLUSTERS),
    projected_mttf_s=seconds("Projected", "1 / (nodes of gpus_high x rate of a node).", _NOT_PROJECTED),
    projected_low_s=seconds(
        "from", "Projection at the upper bound of the rate, clustered if possible.", _NOT_PROJECTED
    ),
    projected_high_s=seconds("to", "Projection at the lower bound of the rate, clustered if possible.", _NOT_PROJECTED),
    gpus_mean=number("GPUs, mean", "Mean number of GPUs, in whole nodes, over the time at risk.", REASON, "GPUs"),
    confidence=number("Confidence", "Confidence level of the intervals."),
    basis=BASIS,
    expected_failures=number("Expected failures", "Failures expected at the failure rate of other sizes.", _UNTESTED),
    p_value=number("p", "Exact test that the size has the rate of the other sizes.", _UNTESTED),
    p_clustered=number(
        "p, clustered", "Clustered p-value of equal failure rates.", _UNTESTED + ", or too few clusters"
    ),
)
NODE_FAILURE_RATE = table(
    "node_failure_rate",
    "A confidence level: how often a node at work fails, and the projection limit.",
    basis=BASIS,
    bound=words(
        "Bound",
        "lower: states alone name causes, so the rate is at least this, and times and ratios from it at most theirs.",
        blank="health events or logs name causes too, the units are components, or every failure counts",
    ),
    above_gpus=count("Above GPUs", "The rate counts only jobs above this size.", "components all count", "GPUs"),
    node_gpus=count("GPUs of a node", "GPUs per node.", "the units hold no GPUs", "GPUs"),
    node_gpus_from=words("From", "Source: config, trace, jobs (recorded nodes) or default.", "the units hold no GPUs"),
    jobs=count("Runs", "Runs with a known duration that count, or components at risk.", unit="attempts"),
    failures=count(
        "Failures", "Runs that infrastructure failures ended, by the rule in the column basis.", unit="failures"
    ),
    node_days=number("Node-days", "Nodes of the counted runs times their durations.", unit="node-days"),
    failures_per_1000_node_days=number(
        "Failures per 1000 node-days", "Failures divided by node-days.", REASON, **_PER_1000
    ),
    confidence=number("Confidence", "Confidence level of the interval."),
    ci_low=number("from", "Lower bound of Garwood's interval.", REASON, **_PER_1000),
    ci_high=number("to", "Upper bound of Garwood's interval; one-sided if there is no failure.", REASON, **_PER_1000),
    **clustered_columns(partial(number, **_PER_1000), blank=NO_CLUSTERS),
    days_per_failure=number("Days per failure", "Node-days of use per failure.", "no failure", "days", n="failures"),
    failures_per_node_day=number("Failures per node-day", "Failure rate per node-day.", REASON, **_PER_DAY),
    ci_low_per_node_day=number("from", "Lower bound per node-day.", REASON, **_PER_DAY),
    ci_high_per_node_day=number("to", "Upper bound per node-day.", REASON, **_PER_DAY),
    largest_run_nodes=count("Largest run", "Nodes of the largest run.", unit="nodes"),
    largest_run_gpus=count("Largest run, GPUs", "GPUs on the nodes of the largest run.", "either is not known", "GPUs"),
    projects_to_nodes=count("Projected to", "Projection limit: nodes of the largest projected run.", unit="nodes"),
    no_projection=words("No projection", "Why no larger run is projected."),
    needed=words("Needed", "Data needed to project to larger runs."),
    reason=reason("Why the rate is blank, or covers other sizes than requested."),
)
SIZE_LAW = table(
    "size_law",
    "A model of the mean time to failure by nodes of a run: a line on logarithmic axes.",
    basis=BASIS,
    model=words("Model", "Model: poisson, quasi_poisson (errors widened by the dispersion) or clustered."),
    cluster_by=words("Clustered by", "Level of correlated failures.", "the model is not clustered"),
    clusters=number("Effective clusters", "Kish's effective number of clusters.", "the model is not clustered"),
    sizes=count("Sizes", "Run sizes (in nodes) with time at risk.", unit="sizes"),
    jobs=count("Runs", "Runs of all sizes.", unit="attempts"),
    failures=count(
        "Failures", "Runs that infrastructure failures ended, by the rule in the column basis.", unit="failures"
    ),
    slope=number("Slope", "Slope of log mean time to failure on log nodes.", REASON),
    slope_se=number("Standard error", "Standard error of the slope.", REASON),
    confidence=number("Confidence", "Confidence level of the interval."),
    ci_low=number("from", "Lower bound of the slope's interval.", REASON),
    ci_high=number("to", "Upper bound of the slope's interval.", REASON),
    p_value=number("p", "Wald test of the expected slope.", REASON),
    detectable_low=number("Detectable from", "Expected slope minus the detectable difference.", REASON),
    detectable_high=number("Detectable to", "Expected slope plus the detectable difference.", REASON),
    deviance=number("Deviance", "Deviance of the pooled failures from the line.", _FEW_POOLS),
    df=count("df", "Degrees of freedom: pools minus 2.", _FEW_POOLS),
    dispersion=number("Dispersion", "Pearson's chi-squared divided by df; 1 for Poisson variation.", _FEW_POOLS),
    verdict=words("Verdict", "Verdict on the 1/N law: agrees, rejected, or too few failures to tell.", REASON),
    converged=truth("Converged", "Whether the regression converged.", REASON),
)
SURVIVAL_SUMMARY_INFRA = table(
    "survival_summary_infra", "A stratum of runs: time without an infrastructure failure.", **SUMMARY, basis=BASIS
)
MTTF_INFRA = table("mttf_infra", "Mean time to infrastructure failure, by stratum and confidence.", **MTTF, basis=BASIS)
ANALYSIS = Analysis(
    question="What is the mean time to failure at every job size, and the failure rate of a node?",
    theme="scaling",
    rank=10,
    needs=["durations_infra"],
    uses=["nodes"],
    settings={
        "gives": lambda trace: trace.gives,
        "has_logs": lambda trace: bool(trace.node_logs),
        "strata": lambda trace: trace.strata,
        "node_gpus": lambda trace: trace.entry.get("node_gpus"),
        "above_gpus": "sizes/above_gpus",
        "block_days": unit_block_days,
    },
    tables=(MTTF_BY_GPUS, NODE_FAILURE_RATE, SIZE_LAW, SURVIVAL_SUMMARY_INFRA, MTTF_INFRA),
    charts={"mttf_by_gpus": ["mttf_by_gpus", "node_failure_rate"]},
    main=("mttf_by_gpus",),
    sections=["sizes"],
    in_size_unit=True,
    memory_mb=290,
    mb_per_gb={"pai2020": 60, "philly": 180, "sacct": 1900},
)
