from collections.abc import Callable

from ttf.report import words
from ttf.report.tables import Mean, html_table
from ttf.report.trace import Trace

Identifier = Callable[[str], str]


def tables(trace: Trace, identifier: Identifier) -> dict[str, str]:
    limited = trace.table("outcomes")["at_time_limit"].sum() > 0
    at_limit = {"at_time_limit": ("At time limit", words.count)} if limited else {}
    return {
        "outcomes": html_table(
            trace.table("outcomes"),
            {
                "outcome": ("Outcome", None),
                "jobs": (f"{trace.about['unit'].capitalize()}s", words.count),
                "jobs_share": ("Share", words.share),
                "gpu_hours": ("GPU hours", words.number),
                "gpu_hours_share": ("Share", words.share),
                "n": ("n", words.count),
                "runtime_mean_s": Mean("Mean run time", words.duration, "n"),
                "runtime_median_s": ("Median", words.duration),
                "runtime_p90_s": ("90th percentile", words.duration),
                **at_limit,
            },
            identifier("outcomes"),
        ),
    }
