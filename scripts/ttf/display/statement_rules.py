"""The rules R1 to R14: which statements the metrics `m` of a trace support."""

import re
from dataclasses import dataclass

from ttf.display.metrics import FEWEST_FAILURES
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.stats.durations.missing_ends import MOST_WITHOUT_END
from ttf.stats.large_runs.projection import FURTHEST

FEWEST_ENDED_SHARE = 0.5
MOSTLY = 0.5
# A test that misses a node with this many times the failures of the others cannot show that no such node exists.
MOST_DETECTABLE = 5
# If a smaller share of jobs has a GPU, GPU time describes few jobs.
FEWEST_WITH_GPUS = 0.05
HEADLINES = (
    "ettr.estimate.wall_clock_ettr",
    "ettr.estimate.scheduled_ettr",
    "ettr.mttf_s",
    "ettr.assumed.failure_rate",
)
# Under R14: the numbers that more failures would raise, and those that they would lower.
_BOUNDS = {
    "at least": re.compile(
        r"failed_time\.infra\.share|sizes\.(rate|over_time)\.(.*\.)?failures_per_1000_node_days"
        r"|ettr\.assumed\.failure_rate|ettr\.(estimate|measured_rate)\.(interruptions|wall_s|queued_s)"
    ),
    "at most": re.compile(
        r"sizes\.(rate\.days_per_failure|(smallest|largest|measured\.\d+|projected\.\d+)\.mttf_s)|ettr\.mttf_s"
        r"|ettr\.(estimate|measured_rate)\.(wall_clock_ettr|scheduled_ettr)|ettr\.(at_optimum|optimal_interval_s|daly_young_s)"
    ),
}
STATES_ONLY = "Only states name causes: node_logs or health_events would show more failures."


def r1_cause_unknown(m: Numbers) -> bool:
    """R1: infrastructure failures cannot be distinguished from others, so every failure counts."""
    return m.value("sizes.basis", "proxy") == "proxy"


def are_checkpoints_uncertain(m: Numbers) -> bool:
    """Whether failures may be errors that recur, and few runs last a day or longer: a checkpoint may save nothing."""
    return r1_cause_unknown(m) and r8_few(m.value("ettr.measured.runs", 0))


def r2_scaling_untested(m: Numbers) -> bool:
    """R2: 1/N cannot be tested, and the target is larger than the largest size with enough failures."""
    return "sizes.law.reason" in m and "ettr.by" not in m


def r3_scaling_rejected(m: Numbers) -> bool:
    """R3: 1/N is rejected by the pooled slope, and no run of the target size was measured."""
    return m.value("sizes.law.verdict", "") == "rejected" and m.value("ettr.by", "") != "measured_rate"


def r4_too_far(m: Numbers) -> bool:
    """R4: the target is more than four times as large as the largest run of the trace."""
    return _ratio_to_largest_run(m) > FURTHEST


def is_projection(m: Numbers) -> bool:
    """R4: the target is larger than any run of the trace, by a factor of at most four."""
    return 1 < _ratio_to_largest_run(m) <= FURTHEST


def r5_measured_differs(m: Numbers) -> bool:
    """R5: runs of the target size failed at a different rate than the others."""
    return m.value("sizes.check.p_value", 1.0) < 0.05 and m.value("ettr.by", "") == "estimate"


def r13_long_runs_differ(m: Numbers) -> bool:
    """R13: measured runs of the target size differ from the model by more than both intervals allow."""
    return bool(m.value("ettr.measured_target.differs", False))


def ettr_key(m: Numbers) -> str:
    """Return the key of the ETTR to show: of scheduled time, measured under R13; of wall-clock time if none ends."""
    key = f"ettr.{'measured_target' if r13_long_runs_differ(m) else m['ettr.by']}.scheduled_ettr"
    return key if key in m else f"ettr.{m['ettr.by']}.wall_clock_ettr"


def r6_ends_unknown(m: Numbers) -> bool:
    """R6: more than 5% of the failures have no recorded end: MTTF is a range, and there is no rate and no ratio."""
    return m.value("without_end.share", 0.0) > MOST_WITHOUT_END


def r7_no_failures(m: Numbers) -> bool:
    """R7: there is no failure, so only an upper bound of the rate is known."""
    return m.value("sizes.rate.failures", 0) == 0


def r8_few(failures: int) -> bool:
    """R8: fewer than ten failures, shown in grey."""
    return failures < FEWEST_FAILURES


def r9_few_ended(m: Numbers) -> bool:
    """R9: fewer than half of the jobs ended in success or failure."""
    return m.value("outcomes.ended_share", 1.0) < FEWEST_ENDED_SHARE


def is_failed_time_bound(m: Numbers) -> bool:
    """More than 5% of the failed attempts have no run time and count as 0, so their GPU time is a lower bound."""
    return m.value("lost_work.failed_without_time", 0) > MOST_WITHOUT_END * m.value("lost_work.failed_runs", 0)


def r10_steps(m: Numbers) -> bool:
    """R10: the survival curve drops by more than 5 points at one second, where many jobs end by a time limit."""
    return m.value("survival.steps.is_limit", False)


def r11_no_power(m: Numbers, test: str = "lemons") -> bool:
    """R11: the test (`lemons` or `drains`) found no node and would miss one with five times the failures."""
    nodes = m.value("lemons.lemons" if test == "lemons" else "drains.listed", 0)
    return not nodes and not has_power(m.value(f"{test}.detectable_ratio"))


def has_power(detectable_ratio: float | None) -> bool:
    """Whether a test that finds no node shows that none fails much more often than the others."""
    return detectable_ratio is not None and detectable_ratio <= MOST_DETECTABLE


def choose_shape(m: Numbers) -> tuple[str, str]:
    """Return the key of the Weibull shape to show, and its scope: "within a user", or "" for all at risk."""
    if "lifetimes.shape_within" not in m:
        return "lifetimes.shape", ""
    return "lifetimes.shape_within", f"within a {m['lifetimes.group_by']}"


def limit_keys(m: Numbers) -> list[str]:
    """Return the keys of the time limits (s) at which the survival curve drops, in order."""
    return [key for key in m if key.startswith("survival.limits.") and key.endswith(".time_s")]


def r14_lower_bound(m: Numbers) -> bool:
    """R14: states alone name causes, so failures that logs or health events would reveal are not counted."""
    return "sizes.rate.bound" in m


def frequency(m: Numbers) -> str:
    """Return what precedes a mean time between infrastructure failures: every, or at least every."""
    return "at least every" if r14_lower_bound(m) else "every"


def mark_bounds(m: Numbers) -> None:
    """Give the numbers that R14 makes bounds the field `bound`, which their texts and `ttf check` say."""
    for key in m if r14_lower_bound(m) else ():
        for bound, pattern in _BOUNDS.items():
            if pattern.fullmatch(key):
                m.cell(key)["bound"] = bound


def is_attribution_rare(m: Numbers) -> bool:
    """Whether most failures name no node."""
    return m.value("lemons.attributed_share", 1) < 0.5


def cannot_tell(m: Numbers, test: str = "lemons") -> str:
    """Return the finding of a test without power: its reason, and the data that would help."""
    return f"cannot tell: {no_power_reason(m, test)}; {_power_remedy(m, test)}"


def _power_remedy(m: Numbers, test: str) -> str:
    if test == "lemons" and is_attribution_rare(m):
        return "with FailedNode, health events or node logs, more would"
    is_proxy = test == "lemons" and m.value("lemons.basis", "") == "proxy"
    return f"{'states or health events' if is_proxy else 'a longer record'} would tell more"


def no_power_reason(m: Numbers, test: str = "lemons", has_spread: bool = True) -> str:
    """Return why a test of nodes has no power: 6 of 69 failures name a node."""
    if test == "drains":
        cv = " that differ (CV [drains.ordinary_cv:2])" if "drains.ordinary_cv" in m else ""
        return f"[drains.outages outage] are too few for [drains.nodes node]{cv}"
    failures = "[lemons.window_failures failure]"
    if is_attribution_rare(m):
        return f"[lemons.failures] of {failures} name a node"
    spread = ""
    if has_spread and "lemons.first.ordinary_cv" in m:
        spread = " that differ (CV [lemons.first.ordinary_cv:2])"
    return f"{failures} are too few for [lemons.tested node]{spread}"


def r12_few_gpus(m: Numbers) -> bool:
    """R12: fewer than 5% of the jobs have a GPU although sizes are in GPUs, so GPU time describes few jobs."""
    return m.size.is_gpu and 0 < m.value("data.gpu_jobs", 0) < FEWEST_WITH_GPUS * m.value("data.jobs", 0)


def few_gpus_sentence(m: Numbers, unit: str) -> str:
    """Return the sentence "4 of 1,000 jobs have GPUs"."""
    return f"[data.gpu_jobs] of [data.jobs] {unit}s {'has' if m['data.gpu_jobs'] == 1 else 'have'} GPUs"


@dataclass(frozen=True)
class Withheld:
    """Why there is no estimate at the target size: the unmet conditions, and the data needed."""

    reasons: tuple[str, ...]
    needed: str

    @property
    def text(self) -> str:
        return "; ".join(self.reasons)


def find_withheld_reasons(m: Numbers) -> Withheld | None:
    """Return why the rules allow no estimate at the target size, or None if they allow one."""
    if "ettr.by" in m and not r1_cause_unknown(m):
        return None
    reasons = []
    if r1_cause_unknown(m):
        reasons.append("causes are not recorded, so every failure would count as infrastructure")
    if r2_scaling_untested(m):
        reasons.append(f"whether MTTF falls with size cannot be tested ({m['sizes.law.reason']})")
    if r3_scaling_rejected(m):
        reasons.append(
            "pooled over all jobs, MTTF does not fall as 1/N (within users it may), and runs of this size have fewer "
            "than 10 infrastructure failures"
        )
    if r4_too_far(m):
        reasons.append(f"{target(m)} is more than {FURTHEST} times the largest run")
    if not reasons:
        reasons.append(m.value("ettr.withheld", "the failure rate of a node is unknown"))
    return Withheld(tuple(reasons), m.value("ettr.needed", ""))


def target(m: Numbers) -> str:
    """Return the target size of the report: 1,024 GPUs."""
    return words.plural(m.value("ettr.assumed.size_of_the_run", 0), m.value("ettr.unit", "GPUs").removesuffix("s"))


def target_adjective(m: Numbers) -> str:
    """Return the target size before a noun, with its article: a 1,024-GPU."""
    size = target(m).replace(" ", "-").replace(words.NO_BREAK, "-").removesuffix("s")
    return f"{words.article(size)} {size}"


def list_withheld(m: Numbers) -> dict[str, str]:
    """Return key -> reason of the HEADLINES that the tables of the trace withhold."""
    withheld = find_withheld_reasons(m)
    return dict.fromkeys(sorted(HEADLINES), withheld.text) if withheld else {}


def _ratio_to_largest_run(m: Numbers) -> float:
    largest = m.value("sizes.largest_run.gpus", 0)
    return m.value("ettr.assumed.size_of_the_run", 0) / largest if largest else 0.0
