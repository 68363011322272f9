"""What may be said of a trace: the rules R1 to R12, each by its number, on the numbers `m` of the trace."""

import math
from dataclasses import dataclass

from ttf.display.metrics import FEWEST_FAILURES
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.stats.durations.missing_ends import MOST_WITHOUT_END
from ttf.stats.large_runs.projection import FURTHEST

FEWEST_ENDED_SHARE = 0.5
STEP, MOSTLY = 0.05, 0.5
# A test that misses nodes with so many times the failures of the others does not show that there are none.
MOST_DETECTABLE = 5
# With fewer of the jobs GPU time is that of a few jobs.
FEWEST_WITH_GPUS = 0.05
# What rests on the failure rate at the size of the run, as prefixes of keys, and what a planner would start from.
AT_TARGET = (
    *("ettr.estimate.", "ettr.low.", "ettr.high.", "ettr.measured_rate", "ettr.mttf", "ettr.optimal_interval_s"),
    *(
        "ettr.approximated",
        "ettr.at_optimum",
        "ettr.daly_young_s",
        "ettr.simulated.",
        "ettr.mitigation.",
        "ettr.saving.",
    ),
    *("ettr.assumed.failure_rate", "ettr.limit.", "changes.ettr."),
)
# Where the rate of nodes, and what rests on ends, cannot be told.
NO_NODES = "neither nodes nor causes of failures are recorded"
WITHOUT_ENDS = "cannot be told: most failures have no recorded end"
HEADLINES = ("ettr.estimate.ettr", "ettr.mttf_s", "ettr.assumed.failure_rate")


def r1_cause_unknown(m: Numbers) -> bool:
    """Nothing tells failures of the infrastructure from others: every failure counts."""
    return m.value("sizes.basis", "proxy") == "proxy"


def r2_scaling_untested(m: Numbers) -> bool:
    """1/N cannot be tested, and the run is larger than the largest size with failures enough."""
    return m.has("sizes.law.reason") and not m.has("ettr.by")


def r3_scaling_rejected(m: Numbers) -> bool:
    """1/N is rejected, and no run of the size of the target was measured."""
    return m.value("sizes.law.verdict", "") == "rejected" and m.value("ettr.by", "") != "measured_rate"


def r4_too_far(m: Numbers) -> bool:
    """The run is more than four times as large as the largest of the trace."""
    return _times_largest(m) > FURTHEST


def is_projection(m: Numbers) -> bool:
    """R4: the run is larger than any of the trace, by a factor of at most four."""
    return 1 < _times_largest(m) <= FURTHEST


def r5_measured_differs(m: Numbers) -> bool:
    """Runs of that size failed at another rate than the others."""
    return m.value("sizes.check.p_value", 1.0) < 0.05 and m.value("ettr.by", "") == "estimate"


def r6_ends_unknown(m: Numbers) -> bool:
    """More than 5% of the failures have no end written: a mean time to failure is a range."""
    return m.value("without_end.share", 0.0) > MOST_WITHOUT_END


def ends_mostly_unknown(m: Numbers) -> bool:
    """More than half of the failures have no end written: rates per node and by size would be of the others alone."""
    return m.value("without_end.share", 0.0) > MOSTLY


def r7_no_failures(m: Numbers) -> bool:
    """No failure: only an upper bound of the rate is known."""
    return m.value("sizes.rate.failures", 0) == 0


def r8_few(failures: int) -> bool:
    """Fewer than ten failures: shown in grey."""
    return failures < FEWEST_FAILURES


def r9_few_ended(m: Numbers) -> bool:
    """Fewer than half of the jobs ended in success or failure."""
    return m.value("outcomes.ended_share", 1.0) < FEWEST_ENDED_SHARE


def failed_time_is_bound(m: Numbers) -> bool:
    """More than 5% of the failed attempts have no run time, and count as 0: their GPU time is a lower bound."""
    return m.value("lost_work.failed_without_time", 0) > MOST_WITHOUT_END * m.value("lost_work.failed_runs", 0)


def r10_steps(m: Numbers) -> bool:
    """The survival curve falls by more than 5 points at one second, mostly by a time limit."""
    return m.value("survival.steps.drop", 0.0) > STEP and m.value("survival.steps.timeout_share", 0.0) > MOSTLY


def r11_no_power(m: Numbers, test: str = "lemons") -> bool:
    """No node was found, and the test (`lemons` or `drains`) could not have found one of five times the failures."""
    found = m.value("lemons.lemons" if test == "lemons" else "drains.listed", 0)
    return not found and m.value(f"{test}.detectable_ratio", math.inf) > MOST_DETECTABLE


def has_no_nodes(m: Numbers) -> bool:
    """Whether neither nodes nor causes are recorded: failures of users per assumed node would be a rate of nothing."""
    return m.value("sizes.basis", "") == "proxy" and m.value("sizes.node_gpus_from", "") == "default"


def choose_shape(m: Numbers) -> tuple[str, str]:
    """The key of the Weibull shape that pages give, and of what it is: "within a user", or "" over all at risk."""
    if not m.has("lifetimes.shape_within"):
        return "lifetimes.shape", ""
    return "lifetimes.shape_within", f"within a {m['lifetimes.within']}"


def limit_keys(m: Numbers) -> list[str]:
    """The keys of the seconds at which time limits make steps, in their order."""
    return [key for key in m if key.startswith("survival.limits.") and key.endswith(".time_s")]


def few_name_nodes(m: Numbers) -> bool:
    """Whether most failures are attributed to no node."""
    return m.value("lemons.attributed_share", 1) < 0.5


def why_no_finding(m: Numbers) -> str:
    """What the test of nodes lacks where it has no power: 6 of 69 failures name a node."""
    failures = "[lemons.window_failures failure]"
    if few_name_nodes(m):
        return f"[lemons.failures] of {failures} name a node"
    differ = ""
    if m.has("lemons.first.ordinary_cv"):
        differ = " that differ (CV [lemons.first.ordinary_cv:2])"
    return f"{failures} are too few for [lemons.tested node]{differ}"


def r12_few_gpus(m: Numbers) -> bool:
    """Fewer than 5% of the jobs have a GPU, but sizes are told in GPUs: shares of GPU time are theirs alone."""
    return m.size.is_gpu and 0 < m.value("data.gpu_jobs", 0) < FEWEST_WITH_GPUS * m.value("data.jobs", 0)


def few_gpus(m: Numbers, unit: str) -> str:
    """4 of 1,000 jobs have GPUs."""
    return f"[data.gpu_jobs] of [data.jobs] {unit}s {'has' if m['data.gpu_jobs'] == 1 else 'have'} GPUs"


@dataclass(frozen=True)
class Withheld:
    """Why nothing is said of the run of the target size: conditions not met; and what data it would take."""

    reasons: tuple[str, ...]
    needed: str

    @property
    def text(self) -> str:
        return "; ".join(self.reasons)


def withheld_at_target(m: Numbers) -> Withheld | None:
    """Whether the rules allow no estimate at the size of the run: why; None where they allow one."""
    if m.has("ettr.by") and not r1_cause_unknown(m):
        return None
    size = target(m)
    reasons = []
    if r1_cause_unknown(m):
        reasons.append("causes are not recorded, so every failure would count as infrastructure")
    if r2_scaling_untested(m):
        reasons.append(f"whether MTTF falls with size is untestable ({m['sizes.law.reason']})")
    if r3_scaling_rejected(m):
        reasons.append("MTTF does not fall as 1/N here, and no run of this size has 10 failures of infrastructure")
    if r4_too_far(m):
        reasons.append(f"{size} is more than {FURTHEST} times the largest run")
    if not reasons:
        reasons.append(m.value("ettr.withheld", "the failure rate of a node is not known"))
    return Withheld(tuple(reasons), m.value("ettr.needed", ""))


def target(m: Numbers) -> str:
    """The size of the run that the report answers for: 1,024 GPUs."""
    size = m.value("ettr.assumed.size_of_the_run", 0)
    return words.plural(size, m.value("ettr.unit", "GPUs").removesuffix("s"))


def withhold(m: Numbers) -> dict[str, str]:
    """Take out of the numbers what may not be said: key -> why. Named are also the headlines that were never made."""
    why = withheld_at_target(m)
    if why is None:
        return {}
    gone = [key for key in m if key.startswith(AT_TARGET)]
    for key in gone:
        del m[key]
    return dict.fromkeys(sorted({*gone, *HEADLINES}), why.text)


def _times_largest(m: Numbers) -> float:
    """How many times as large as the largest run the target is, in GPUs of whole nodes."""
    largest = m.value("sizes.largest_run.gpus", 0)
    return m.value("ettr.assumed.size_of_the_run", 0) / largest if largest else 0.0
