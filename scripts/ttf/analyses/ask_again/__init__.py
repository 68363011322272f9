"""What does study 1 come to by its own recipe, and what with the questions asked well?"""

from ttf.analysis import Analysis
from ttf.contract import REASON, count, number, reason, table, text, truth, whole_seconds

_NO_INTERVAL = "nothing is estimated, the points are too few for an interval, or it is a mean run time"
_NO_TEST = "nothing is estimated, or it is a run time: nothing is tested"
_NO_RATE = "the question is not the correlation of failures, or `reason` says why"
STUDY1 = table(
    "study1",
    "A question of study 1: its answer by its own recipe, and by a better one.",
    question=text("Question", "correlation, cut_off (of shorter runs) or mean_run_time."),
    outcome=text("Outcome", "success or failure."),
    feature=text("Of", "Feature of the jobs."),
    value=text("Value", "Its value.", blank="the question is of all values"),
    cutoff_s=whole_seconds("Cut-off", "Run times below it count in the study.", blank="there is no cut-off"),
    study_set=text("Jobs of the study", "Outcomes that it takes for this one."),
    study_measure=text("As the study asked", "What it estimates."),
    study_estimate=number("As the study asked", "A correlation, or a mean in s.", blank=REASON),
    study_ci_low=number("from", "Lower end of the 95 % interval.", blank=_NO_INTERVAL),
    study_ci_high=number("to", "Upper end.", blank=_NO_INTERVAL),
    study_n=count("n", "Means, or jobs.", blank=REASON),
    study_p=number("p", "Two-sided, not adjusted.", blank=_NO_TEST),
    asked_set=text("Jobs asked well", "Outcome of the jobs."),
    asked_measure=text("Asked well", "What is estimated."),
    asked_estimate=number("Asked well", "A correlation, or a time in s.", blank=REASON),
    asked_ci_low=number("from", "Lower end of the 95 % interval.", blank=_NO_INTERVAL),
    asked_ci_high=number("to", "Upper end.", blank=_NO_INTERVAL),
    asked_n=count("n", "Jobs, or failures.", blank=REASON),
    asked_p=number("p", "Two-sided.", blank=_NO_TEST),
    asked_p_adjusted=number("adjusted p", "Holm over the features.", blank=_NO_TEST),
    split_value=text("Split", "Value that divides the jobs into halves.", blank=_NO_RATE),
    rate_ratio=number("Ratio of rates", "Failures an hour of run time above the split by those below.", blank=_NO_RATE),
    rate_ci_low=number("from", "Lower end of the 95 % interval.", blank=_NO_RATE),
    rate_ci_high=number("to", "Upper end.", blank=_NO_RATE),
    rate_failures=count("Failures", "Failures on both sides of the split.", blank=_NO_RATE),
    rate_p=number("p", "Two-sided, of equal rates.", blank=_NO_RATE),
    rate_p_adjusted=number("adjusted p", "Holm over the features.", blank=_NO_RATE),
    rate_reject=truth("Significant", "Whether the adjusted p is below the level of the study.", blank=_NO_RATE),
    verdict=text(
        "Verdict",
        "kept, weaker, stronger, flips, lost, found, neither or not computable.",
        blank="the question is not of a correlation",
    ),
    change=text("What changes", "The verdict as a sentence."),
    reason=reason(),
)

ANALYSIS = Analysis(
    question="What does study 1 come to by its own recipe, and what with the questions asked well?",
    theme="failure",
    rank=20,
    needs=["jobs", "correlations", "runtime_by_group", "mttf"],
    settings={"significance": "correlation/significance", "unit": lambda trace: trace.unit},
    tables=(STUDY1,),
    charts={"study1_asked_twice": "study1"},
    sections=["study1"],
    memory_mb=260,
    mb_per_gb={"pai2020": 10, "philly": 30},
)
