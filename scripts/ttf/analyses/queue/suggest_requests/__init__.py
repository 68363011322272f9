"""What should the next request be, after jobs that ended at their time limit or out of memory?"""

from collections.abc import Callable
from functools import partial

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns
from ttf.engine.contract import REASON, Column, count, name, number, share, table, whole_seconds, words
from ttf.records.record_contracts import TIME_LIMITS

# Status words by what was too small: Slurm's, and those of Kubernetes.
LIMIT_WORDS = {"run time": (*TIME_LIMITS, "DEADLINEEXCEEDED"), "memory": ("OUT_OF_MEMORY", "OOMKILLED")}


def _suggestion_columns(value: Callable[..., Column], unit: str) -> dict[str, Column]:
    """Return the columns of a table of suggestions in a unit. value: makes a column of that unit."""
    return {
        "user": name("User", "Who submitted the jobs.", blank="the trace does not record it", name_kind="user"),
        "request": words("Request", "What else the jobs requested.", blank="nothing else is recorded"),
        "n": count("n", "Jobs of this user and request, of one run and a known value.", unit="jobs"),
        "successes": count("Successes", "Those that succeeded; all others are censored.", unit="jobs"),
        "at_limit": count("At limit", "Those that ended because the request was too small.", unit="jobs"),
        "gpu_hours": number("GPU-hours", "Used by the jobs at the limit.", unit="GPU-hours"),
        f"requested_{unit}": value("Requested", "Largest request of these jobs.", "it is not recorded"),
        "tested": count("Tested", "Later jobs that judge the rule of the suggestion (rolling origin).", unit="jobs"),
        "fitted_share": share("Fitted", "Of these, by Kaplan-Meier, within their suggestion.", REASON, n="tested"),
        f"suggested_{unit}": value("Suggested", "Kaplan-Meier quantile of 90%, widened as the test demands.", REASON),
        "reason": words("Reason", "Why cells of the row are blank.", blank="no cell needs a reason"),
    }


SUGGESTED_TIME_LIMITS = table(
    "suggested_time_limits",
    "A row per user and request with jobs that ended at their time limit, those that used most GPU time first.",
    **_suggestion_columns(whole_seconds, "s"),
)
SUGGESTED_MEMORY = table(
    "suggested_memory",
    "A row per user and request with jobs that ended out of memory, those that used most GPU time first.",
    **_suggestion_columns(partial(count, unit="MiB"), "mib"),
)
LIMIT_ENDS = table(
    "limit_ends",
    "Jobs that ended because their request was too small.",
    resource=words("Resource", "run time or memory."),
    jobs=count("Jobs", "Jobs that ended so.", unit="jobs"),
    requests=count("Requests", "Different combinations of user and request among these jobs.", REASON),
    suggested=count("Suggested", "Those with a suggestion.", REASON),
    tested=count("Tested", "Later jobs that judge the rule of the suggestions (rolling origin).", REASON, "jobs"),
    fitted_share=share("Fitted", "Of these, by Kaplan-Meier, within their suggestion.", REASON, n="tested"),
    ci_low=share("95% from", "Lower bound of its interval if the jobs were independent.", REASON),
    ci_high=share("95% to", "Upper bound.", REASON),
    **clustered_columns(share),
    reason=words("Reason", "Why nothing is suggested.", blank="no cell needs a reason"),
)

ANALYSIS = Analysis(
    question="What should the next request be, after jobs that ended at their time limit or out of memory?",
    theme="queue",
    rank=60,
    needs=["jobs"],
    applies=lambda trace: any(word.upper() in words for word in trace.words for words in LIMIT_WORDS.values()),
    settings={"at_submission": lambda trace: trace.format["at_submission"]},
    tables=[SUGGESTED_TIME_LIMITS, SUGGESTED_MEMORY, LIMIT_ENDS],
    sections=["requests"],
    in_size_unit=True,
    memory_mb=250,
)
