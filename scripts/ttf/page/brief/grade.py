"""The grade of the data: A, one step down for each problem, D at worst."""

from ttf.display import statement_rules
from ttf.display.trace_numbers import Numbers

GRADES = "ABCD"
MOST_QUARANTINED, MOST_UNKNOWN, MOST_OPEN = 0.01, 0.25, 0.5


def grade_data(m: Numbers, unit: str = "job") -> tuple[str, tuple[str, ...]]:
    """Return the grade and the reasons for it; an A has none."""
    reasons = []
    if m.value("quality.quarantined_share", 0.0) > MOST_QUARANTINED:
        reasons.append("[quality.quarantined_share] of rows quarantined")
    if statement_rules.r6_ends_unknown(m):
        fault = "without an end" if m.value("mttf.range.high_s", 1) else "without a run time"
        reasons.append(f"[without_end.share] of failures {fault}")
    if "durations.silence_s" in m:
        reasons.append("[durations.silence_s] without any event, perhaps by one wrong time")
    if m.value("taxonomy.unmatched_share", 0.0) > MOST_UNKNOWN:
        reasons.append("[taxonomy.unmatched_share] of causes unknown")
    if m.value("outcomes.unresolved_share", 0.0) > MOST_OPEN:
        reasons.append("[outcomes.unresolved_share] without a recorded result")
    if m.value("sizes.basis", "") == "proxy" and "taxonomy.trials" not in m:
        reasons.append("causes not recorded")
    if statement_rules.r12_few_gpus(m):
        reasons.append(statement_rules.few_gpus_sentence(m, unit))
    return GRADES[min(len(reasons), len(GRADES) - 1)], tuple(reasons)
