"""Words on the trend of faults."""

from ttf.display.trace_numbers import Numbers
from ttf.engine import words

TRENDS = {"worse": "more frequent", "better": "less frequent", "none": "none", "unclear": "unclear"}
# Below this p of homogeneity, the common growth describes no group.
HETEROGENEOUS_P = 0.05


def trend_in_words(m: Numbers) -> str:
    """Say whether faults become more frequent, and in how many groups; nothing if there are too few."""
    return f"{_format_trend(m)}{_format_groups(m)}" if "growth.trend" in m else ""


def _format_trend(m: Numbers) -> str:
    has_groups = m["growth.strata"] > 1
    growth_words = ""
    if "growth.beta_within_ci_low" in m:
        bounds = words.join_range(*(words.number(m[f"growth.beta_within_ci_{bound}"]) for bound in ("low", "high")))
        growth_words = f"{'common ' if has_groups else ''}growth β [growth.beta_within], 95% CI {bounds}; "
    test_words = f"({growth_words}p [growth.trend_p:p_value])"
    scope = " within [growth.strata] groups" if has_groups else ""
    if m["growth.trend"] == "none":
        return f"No {'common ' if has_groups else ''}trend in faults{scope} {test_words}."
    if m["growth.trend"] == "unclear":
        return f"Trend in faults unclear {test_words}: not significant without each unit's first year under watch."
    return f"Faults became {TRENDS[m['growth.trend']]}{scope} {test_words}."


def _format_groups(m: Numbers) -> str:
    if m.value("growth.groups.n", 0) < 2:
        return ""
    subject = (
        "Groups differ (p [growth.homogeneity_p:p_value]): of [growth.groups.n]"
        if "growth.homogeneity_p" in m and m["growth.homogeneity_p"] < HETEROGENEOUS_P
        else "Of [growth.groups.n]"
    )
    return f" {subject}, [growth.groups.better] became less, [growth.groups.worse] more frequent."
