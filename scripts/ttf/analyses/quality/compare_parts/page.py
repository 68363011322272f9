"""Tables of the changes and of the forecast."""

from ttf.analyses.quality.compare_parts import CHANGES, FORECAST, GONE_SUSPECTS, NEW_SUSPECTS, NEW_WORDS
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace

_CHANGES = (
    *("measure", "before", "after", "difference", "ci_low", "ci_high", "detectable_ratio", "n_before", "n_after"),
    *("p_clustered", "p_parts", "p_exact", "p_adjusted", "verdict", "reason"),
)
# Number of weeks shown on the page.
_MOST_WEEKS = 13
_WEEKS = ("what", "week", "observed", "weeks_before", "expected", "low", "high", "held")


def tables(trace: Trace) -> dict[str, PageTable]:
    suspects, new_words = trace.table("new_suspect_nodes"), trace.table("new_failure_words")
    weeks = trace.table("week_forecast").drop_nulls("expected")
    weeks = weeks.group_by("what", maintain_order=True).tail(_MOST_WEEKS)
    return {
        "changes": PageTable(trace.table("changes"), _CHANGES, CHANGES),
        "new_failure_words": PageTable(new_words.head(15), tuple(NEW_WORDS.columns), NEW_WORDS),
        "new_suspect_nodes": PageTable(suspects.head(15), tuple(NEW_SUSPECTS.columns), NEW_SUSPECTS),
        "gone_suspect_nodes": PageTable(
            trace.table("gone_suspect_nodes").head(15), tuple(GONE_SUSPECTS.columns), GONE_SUSPECTS
        ),
        "week_forecast": PageTable(weeks, _WEEKS, FORECAST),
    }
