"""What do the published analyses of study 1 give here, and the same questions at job level, with censoring?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns
from ttf.engine.contract import REASON, Column, count, name, number, table, truth, whole_seconds, words

# Outcome -> jobs that it names. The published method counts other jobs as failed than the one at job level.
JOBS = {"success": "succeeded", "failure": "not succeeded; job level: failed"}
# Figures of the study that leave out long runs: outcome, request, cut-off in s.
CUTOFFS = (
    ("success", "cpu_request", 20_000),
    ("success", "memory_request", 100_000),
    ("failure", "cpu_request", 50_000),
    ("failure", "memory_request", 20_000),
)
# Outcome of the study -> outcome set of our tables.
STUDY_SETS = {"success": "success", "failure": "not_success"}
# The data set of the study, whose page has its figures again.
DATASET = "pai2020"
_NO_INTERVAL = "nothing is estimated, there are too few points for an interval, or it is a mean run time"
_NO_VERDICT = "the question is not of a correlation"
_NO_TEST = "nothing is estimated, or it is a run time, which is not tested"
_NO_RATE = "the question is not a correlation of failures, or `reason` says why"
_NO_CLUSTERED = "there is no exact value either, or `reason` says why"


def _prefixed_clustered_columns(prefix: str) -> dict[str, Column]:
    return {f"{prefix}_{name}": column for name, column in clustered_columns(number, blank=_NO_CLUSTERED).items()}


STUDY1 = table(
    "study1",
    "A question of study 1, answered by its method and at job level with censoring.",
    question=words("Question", "correlation, cut_off (of shorter runs) or mean_run_time."),
    outcome=words("Outcome", "success or failure."),
    feature=words("Feature", "Feature of the jobs."),
    value=name("Value", "Value of the feature.", blank="the question covers all values", by="feature"),
    cutoff_s=whole_seconds("Cut-off", "The study uses run times below it.", blank="there is no cut-off"),
    study_estimate=number("Published method, our data", "A correlation, or a mean in s.", blank=REASON),
    study_ci_low=number("from", "Lower end of the 95% CI.", blank=_NO_INTERVAL),
    study_ci_high=number("to", "Upper bound of the 95% CI.", blank=_NO_INTERVAL),
    study_n=count("n", "Number of means, or of jobs.", blank=REASON),
    study_p=number("p", "Two-sided p, not adjusted.", blank=_NO_TEST),
    asked_estimate=number("Job-level, censored", "A correlation, or a time in s.", blank=REASON),
    asked_ci_low=number("from", "Lower end of the 95% CI.", blank=_NO_INTERVAL),
    asked_ci_high=number("to", "Upper bound of the 95% CI.", blank=_NO_INTERVAL),
    **_prefixed_clustered_columns("asked"),
    asked_n=count("n", "Number of jobs, or of failures.", blank=REASON),
    asked_p_adjusted_clustered=number("adjusted p, clustered", "Clustered p adjusted by Holm's method.", _NO_CLUSTERED),
    split_value=name("Split", "Value that splits the jobs into halves.", blank=_NO_RATE, by="feature"),
    rate_ratio=number(
        "Ratio of rates", "Failures per hour of run time above the split divided by the rate below.", _NO_RATE
    ),
    rate_ci_low=number("from", "Lower end of the 95% CI.", blank=_NO_RATE),
    rate_ci_high=number("to", "Upper bound of the 95% CI.", blank=_NO_RATE),
    **_prefixed_clustered_columns("rate"),
    rate_failures=count("Failures", "Failures on both sides of the split.", blank=_NO_RATE),
    rate_p_adjusted_clustered=number("adjusted p, clustered", "Clustered p adjusted by Holm's method.", _NO_CLUSTERED),
    rate_reject_clustered=truth(
        "Significant, clustered", "Whether the adjusted clustered p is below the study's level.", blank=_NO_CLUSTERED
    ),
    verdict=words("Verdict", "kept, weaker, stronger, flips, lost, found, neither or not computable.", _NO_VERDICT),
    verdict_clustered=words("Verdict, clustered", "Verdict by the clustered p; blank if there is none.", _NO_VERDICT),
    change=words("What changes", "The clustered verdict in a sentence."),
)


def _correlation_count(heading: str, description: str, n: str = "compared") -> Column:
    """Return a column that counts correlations; n: column with the number of which they are a part."""
    return count(heading, description, unit="correlations", n=n)


_FREE = "if jobs were independent"
STUDY1_SUMMARY = table(
    "study1_summary",
    "Correlations of study 1 without a cut-off by verdict at job level, and its mean run times.",
    compared=_correlation_count("Compared", "Correlations that this trace allows to compute.", ""),
    significant=_correlation_count("Significant", "Correlations significant by the published method."),
    still_significant=_correlation_count(
        "still", "Of these, correlations still significant at job level (clustered test)."
    ),
    still_significant_if_independent=_correlation_count(
        f"still, {_FREE}", "Of these, correlations still significant at job level, if jobs are independent."
    ),
    flips=_correlation_count("flips", "Correlations with the opposite sign at job level (clustered test)."),
    weaker=_correlation_count("weaker", "Correlations less than half as strong at job level (clustered test)."),
    newly_significant=_correlation_count("found", "Correlations significant only at job level (clustered test)."),
    newly_significant_if_independent=_correlation_count(
        f"found, {_FREE}", "Correlations significant only at job level, if jobs are independent."
    ),
    untested=_correlation_count("not told", "Correlations with too few clusters for a test."),
    rates=count(
        "Requests", "Requests whose upper and lower half can be tested for equal failure rates.", unit="requests"
    ),
    rates_differ=count(
        "differ",
        "Requests whose upper and lower half differ in failure rate (clustered test).",
        unit="requests",
        n="rates",
    ),
    gpu_types=count("GPU types", "Types with both a mean time to failure and a mean run time.", unit="GPU types"),
    lowest_ratio=number(
        "Lowest ratio",
        "Lowest ratio of mean time to failure to mean run time of failures.",
        "none has both",
        n="gpu_types",
    ),
    highest_ratio=number(
        "Highest ratio",
        "Highest ratio of mean time to failure to mean run time of failures.",
        "none has both",
        n="gpu_types",
    ),
)

ANALYSIS = Analysis(
    question="What do the published analyses give here, and the same questions at job level, with censoring?",
    theme="replication",
    rank=10,
    needs=["jobs", "correlations", "runtime_by_group", "mttf"],
    settings={"significance": "correlation/significance", "unit": lambda trace: trace.unit},
    tables=(STUDY1, STUDY1_SUMMARY),
    charts=lambda trace: (
        {"study1_correlations": "study1"}
        | ({"study1_cutoffs": ["runtime_by_group", "correlations"]} if DATASET in trace.datasets else {})
    ),
    sections=["study1"],
    memory_mb=260,
    mb_per_gb={"pai2020": 30, "philly": 60},
)
