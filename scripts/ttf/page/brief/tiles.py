"""The tiles: six of a trace with jobs; of components those that make sense without."""

from collections.abc import Mapping

from ttf.analyses.outages.measure_availability import OUTAGE_FREE
from ttf.analyses.time_to_failure.fit_mttf import SURVIVAL_AT
from ttf.display import statement_rules
from ttf.display.brief_model import FEW, SHOWN, WITHHELD, Tile
from ttf.display.phrases import fraction, is_fraction, is_repaired, joined, noun, plain, timed, with_age, with_numbers
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.engine.size_unit import GPU
from ttf.page.brief import mini_charts

CANNOT = "Cannot be estimated from this trace"
CONDITIONS = 4
# Share of the jobs without a GPU above which they are named where GPU time is told.
MANY_WITHOUT_GPU = 0.1


@with_numbers
def tiles(m: Numbers, given: Mapping, about: Mapping) -> tuple[Tile, ...]:
    made = _of_jobs if about["gives"] == "jobs" else _of_components
    return tuple(tile for tile in made(m, given, about) if tile)


def _of_jobs(m: Numbers, given: Mapping, about: Mapping) -> list[Tile | None]:
    unit, targets = about["unit"], about.get("targets") or {}
    return [
        failure_rate(m, unit, targets),
        failed_gpu_time(m, unit, targets),
        node_rate(m, given, targets),
        mttf_at_target(m, given, targets),
        ettr(m, targets),
        when(m, given, about),
    ]


def _of_components(m: Numbers, given: Mapping, about: Mapping) -> list[Tile | None]:
    unit, targets = about["unit"], about.get("targets") or {}
    return [
        annual_rate(m, unit),
        node_rate(m, given, targets, unit),
        mean_time(m, about),
        when(m, given, about),
        repair(m, unit),
        availability(m),
        excess(m),
    ]


def failure_rate(m: Numbers, unit: str, targets: Mapping) -> Tile:
    name, key = "failure_rate", "outcomes.failure_share"
    title, link = f"{words.capital(unit)} failure rate", "outcomes"
    if not m.has(key):
        return Tile(name, title, WITHHELD, CANNOT, means=f"No {unit} has ended in success or failure.", link=link)
    means = f"Cancelled, running and waiting {unit}s are not counted."
    if is_fraction(m, key):
        means = f"About {fraction(m, key)} {unit}s that ended had failed."
    if m.value("outcomes.timeouts", 0):
        means = (
            f"[outcomes.failure_share_without_timeout] without the [outcomes.timeouts {unit}] that reached "
            "a time limit."
        )
    if statement_rules.r9_few_ended(m):
        means = f"Only [outcomes.ended_share] of [data.jobs] {unit}s ended with a recorded result."
        if m.has("outcomes.failure_share_at_least"):
            at = m.span("outcomes.failure_share_at_least", "outcomes.failure_share_at_most")
            means += f" With those of unknown result: {at}."
    ended = "n = [outcomes.ended]"
    return Tile(
        *(name, title, _state(m.value("outcomes.failure.jobs", 0)), f"[{key}]", f"of ended {unit}s"),
        interval=joined(m.keyed_interval("outcomes.failure_share_{}"), ended),
        means=means,
        badge=_part(m) or _few(m.value("outcomes.failure.jobs", 0)),
        link=link,
        mini=mini_charts.of_outcomes(m),
        target=_at_most(m, key, targets, "failure_rate", words.share, "outcomes.failure_share_{}"),
    )


def failed_gpu_time(m: Numbers, unit: str, targets: Mapping) -> Tile | None:
    key = "lost_work.failed_gpu_hours_share"
    if not m.has(key) or statement_rules.r12_few_gpus(m):
        return None
    counted = "n = [lost_work.runs attempt]" if m.has("lost_work.runs") else ""
    if missing := m.value("lost_work.failed_without_time", 0):
        verbs = ("lacks", "counts") if missing == 1 else ("lack", "count")
        counted = "[lost_work.failed_without_time failed attempt] {} a run time and {} as 0".format(*verbs)
    at_least = "≥ " if statement_rules.failed_time_is_bound(m) else ""
    if m.size == GPU and m.value("data.jobs_without_gpu", 0) > MANY_WITHOUT_GPU * m["data.jobs"]:
        counted += f"; [data.jobs_without_gpu {unit}] had no GPU"
    if m.value("outcomes.running.gpu_hours_share", 0.0) > 0.5:
        means = f"{words.capital(unit)}s still running hold [outcomes.running.gpu_hours_share] of the GPU time."
    elif m.has("failed_time.infra.share"):
        most = max(("limit", "infra", "other"), key=lambda part: m[f"failed_time.{part}.share"])
        by = {"limit": "Time limits ended", "infra": "Infrastructure failures ended", "other": "Other failures ended"}
        means = f"{by[most]} [failed_time.{most}.share] of it."
    else:
        means = "Causes are not recorded: errors of programs and of the hardware count alike."
    return Tile(
        *("failed_gpu_time", "GPU time in failed attempts", SHOWN, at_least + f"[{key}]"),
        "of [lost_work.gpu_hours] GPU-h",
        interval=joined(m.keyed_interval(f"{key}_ci_{{}}"), counted),
        means=means,
        badge="lower bound" if at_least else _part(m),
        link="lost",
        mini=mini_charts.of_failed_time(m),
        target=_at_most(m, key, targets, "failed_gpu_time", words.share, f"{key}_ci_{{}}"),
    )


def node_rate(m: Numbers, given: Mapping, targets: Mapping, unit: str = "node", confidence: str = "90") -> Tile:
    name, link, key = "node_rate", "nodes", "sizes.rate.failures_per_1000_node_days"
    proxy = statement_rules.r1_cause_unknown(m)
    title = "Failure rate per node" if proxy else "Infrastructure failure rate"
    if m.value("sizes.basis", "component" if m.has("data.outages") else "") == "component":
        title = f"Failure rate per {unit}"
    per = f"per 1,000 {unit}-days"
    if statement_rules.has_no_nodes(m):
        return Tile(name, title, WITHHELD, CANNOT, means=f"{words.capital(statement_rules.NO_NODES)}.", link=link)
    if not m.has(key) and not m.has("sizes.rate.ci_high"):
        unknown = f"how many {unit}s were watched is not known"
        why = m.value("sizes.rate.reason", unknown if m.has("data.outages") else "no node was seen at work")
        return Tile(name, title, WITHHELD, CANNOT, means=f"{words.capital(why)}.", link=link)
    if statement_rules.ends_mostly_unknown(m):
        missing = f"{_without_end(m)} have no recorded end, and so no time at risk."
        return Tile(name, title, WITHHELD, CANNOT, means=missing, link=link)
    failures = m["sizes.rate.failures"]
    if statement_rules.r7_no_failures(m):
        seen = f"95% confidence · 0 failures in [sizes.rate.node_days] {unit}-days"
        bound = "< [sizes.rate.ci_high]"
        means = "No failure was observed. The true rate may be zero or up to [sizes.rate.ci_high]."
        means += _assumed_nodes(m)
        return Tile(name, title, SHOWN, bound, per, seen, means, "upper bound", link)
    above = m.value("sizes.rate.above_gpus", 0)
    counted = "[sizes.rate.failures failure]"
    every = "lost_work.infra_failures"
    if above and m.value(every, 0) > failures:
        # One set, of which the rate takes the large jobs.
        counted = f"[sizes.rate.failures] of [{every} failure]"
    if above:
        counted += ", jobs > [sizes.rate.above_gpus] GPUs"
    means = f"One failure per {unit} every [sizes.rate.days_a_failure] days of use."
    if proxy:
        means = "User errors are included: not comparable with infrastructure rates."
    means += _assumed_nodes(m)
    return Tile(
        *(name, title, _state(failures), f"[{key}]", per),
        interval=joined(m.keyed_interval("sizes.rate.ci_{}", confidence=confidence), counted),
        means=means,
        badge="any failure" if proxy else _few(failures),
        link=link,
        mini=mini_charts.over_time(m, given),
        target=_at_most(m, key, targets, "node_rate", words.number, "sizes.rate.ci_{}"),
    )


def _assumed_nodes(m: Numbers) -> str:
    if m.value("sizes.node_gpus_from", "") != "default":
        return ""
    return " Nodes of [sizes.node_gpus] GPUs are assumed."


def mttf_at_target(m: Numbers, given: Mapping, targets: Mapping) -> Tile:
    title, link = f"MTTF of {words.article(plain(_target(m)))} {_target(m)} job", "scaling"
    if why := statement_rules.withheld_at_target(m):
        unmet = f"{len(why.reasons)} of {CONDITIONS} conditions for this estimate not met"
        means, needed = f"{words.capital(why.text)}.", f"Needed: {why.needed}." if why.needed else ""
        return Tile("mttf", title, WITHHELD, CANNOT, "", unmet, means, "not estimated", link, needed)
    value, unit = timed(m, "ettr.mttf_s")
    failures = m.n(f"ettr.{m['ettr.by']}.ettr") or 0
    measured = m["ettr.by"] == "measured_rate"
    how = f"{words.plural(failures, 'failure')} at this size" if measured else "1/N projection"
    means = "A constant failure rate, in proportion to the nodes, is assumed."
    badge = "projection" if statement_rules.is_projection(m) else _few(failures)
    if statement_rules.is_projection(m):
        means = "No run was larger than [sizes.largest_run.gpus] GPUs."
    if statement_rules.r5_measured_differs(m):
        badge = "measured differs"
        means = "[sizes.check.observed failure] seen, [sizes.check.expected] expected"
        if m.has("ettr.measured_rate.mttf_s"):
            means += ": they give [ettr.measured_rate.mttf_s]"
        means += "."
    infra = m.value("lost_work.infra_failures", 0)
    if infra and m.value("lost_work.infra_without_time", 0) > statement_rules.MOST_WITHOUT_END * infra:
        means = "[lost_work.infra_without_time failure] without a written end count as 0 s of use."
    means += _assumed_nodes(m)
    return Tile(
        *("mttf", title, _state(failures), value, unit),
        interval=joined(_of_rate(m, "ettr.mttf_{}_s", "ettr.mttf_s"), how),
        means=means,
        badge=badge,
        link=link,
        mini=mini_charts.fall(m, given),
        target=_mttf_target(m, targets),
    )


def ettr(m: Numbers, targets: Mapping) -> Tile:
    days = m.value("ettr.assumed.work_of_the_run", 0) / 86_400
    title, link = f"ETTR, {statement_rules.target(m)} for {days:g} days", "large-runs"
    if statement_rules.withheld_at_target(m):
        unmet = f"Depends on the MTTF of {words.article(plain(_target(m)))} {_target(m)} job"
        means = "A failure rate can be entered in the planner."
        return Tile("ettr", title, WITHHELD, CANNOT, "", unmet, means, "not estimated", link)
    by = m["ettr.by"]
    key, failures = f"ettr.{by}.ettr", m.n(f"ettr.{by}.ettr") or 0
    ends = f"{key}_ci_{{}}"
    ci = m.keyed_interval(ends, confidence="90") or words.capital(m.value("ettr.no_interval", ""))
    expected = f"ettr.{by}.interruptions"
    interrupted = f"[{expected}] interruptions" if m.has(expected) else ""
    scheduled = f"ettr.{by}.scheduled_share"
    of = "of wall-clock time"
    if m.has(scheduled):
        of = f"of wall-clock, [{scheduled}] of scheduled time"
    means = ""
    if m.value("ettr.wall.queued_s", 0.0) > m.value("ettr.assumed.work_of_the_run", 0):
        means = f"Each start waits [ettr.{by}.queue_s] in the queue."
    badge = "projection" if statement_rules.is_projection(m) else _few(failures)
    if statement_rules.r5_measured_differs(m):
        badge = "measured differs"
        if m.has("ettr.measured_rate.ettr"):
            means += " With the measured MTTF the ETTR is [ettr.measured_rate.ettr]."
    means += f" {_ASSUMED}"
    return Tile(
        *("ettr", title, _state(failures), f"[{key}]", of),
        interval=joined(ci, interrupted),
        means=means.strip(),
        badge=badge,
        link=link,
        mini=mini_charts.wall_clock(m),
        target=_at_least(m, key, targets, "ettr", words.share, _ends(m, ends)),
    )


_ASSUMED = "Checkpoint habits are assumed."


def when(m: Numbers, given: Mapping, about: Mapping) -> Tile | None:
    """The median failed job and the hazard; a range of the mean where the ends of many failures are not known."""
    unit, link, mini = about["unit"], "time-to-failure", mini_charts.steps(m, given)
    if statement_rules.r6_ends_unknown(m):
        return _as_range(m, link)
    key = "outcomes.failure.runtime_median_s"
    if m.has(key):
        value, of = timed(m, key)
        ends = "outcomes.failure.runtime_median_{}_s"
        known, failures = "outcomes.failure.with_runtime", m["outcomes.failure.with_runtime"]
        means, is_limit = _hazard(m), m[key] in [m[limit] for limit in statement_rules.limit_keys(m)]
        if is_limit:
            means = f"The median is a time limit, at which many {unit}s end."
        elif statement_rules.r10_steps(m):
            means = (
                f"Many {unit}s hit their time limit at [survival.steps.time_s], so survival drops by "
                "[survival.steps.drop] there."
            )
        return Tile(
            *("when", f"When {unit}s fail", _state(failures), value, f"{of}, median failed {unit}"),
            interval=joined(m.keyed_interval(ends, key), f"n = [{known} failure]"),
            means=means,
            badge="time limit" if is_limit else _part(m),
            link=link,
            mini=mini,
        )
    table, year, key, last = SURVIVAL_AT, "survival.1y", "survival.1y.survival", "last a year"
    if is_repaired(about):
        table, year, key, last = OUTAGE_FREE, "free.1y", "free.1y.share", "go a year without outage"
        # The curve is that of gaps.
        mini = None
    if m.has(key):
        of = f"of {words.many(noun(table, about))} {last}"
        return Tile(
            *("when", f"When {unit}s fail", SHOWN, f"[{key}]", of),
            interval=joined(m.keyed_interval(f"{year}.ci_{{}}"), "[survival.events failure]"),
            means=_hazard(m, with_age(about)),
            link=link,
            mini=mini,
        )
    return None


def _as_range(m: Numbers, link: str) -> Tile:
    low, high = "mttf.range.low_s", "mttf.range.high_s"
    value = m.span(low, high, high)
    means = "The range is over all that missing ends and open records allow."
    return Tile(
        *("when", "Mean time to failure", SHOWN, value, "", f"{_without_end(m)} have no recorded end", means),
        badge="range",
        link=link,
    )


def _without_end(m: Numbers) -> str:
    return "[without_end.without_end] of [without_end.failures failure]"


def annual_rate(m: Numbers, unit: str) -> Tile | None:
    key = "afr.afr"
    if not m.has(key):
        return None
    failures, days = "[afr.failures failure]", "[period.days day]"
    return Tile(
        *("afr", "Annual failure rate", _state(m["afr.failures"]), f"[{key}]%", f"of {words.many(unit)} a year"),
        interval=joined(m.keyed_interval("afr.ci_{}"), failures),
        means=f"Seen for {days}, not for a year.",
        link="time-to-failure",
    )


def mean_time(m: Numbers, about: Mapping) -> Tile | None:
    if not m.has("mttf.mttf_s"):
        return None
    value, of = timed(m, "mttf.mttf_s")
    return Tile(
        *("mttf", "Mean time to failure", _state(m["mttf.events"]), value, f"{of} of service"),
        interval=joined(m.keyed_interval("mttf.ci_{}_s", "mttf.mttf_s"), "[mttf.events failure]"),
        means=f"Time at risk over failures, of all {about['unit']}s. {_varies(m, with_age(about))}".strip(),
        link="time-to-failure",
    )


def repair(m: Numbers, unit: str) -> Tile | None:
    if not m.has("repair.median_s"):
        return None
    value, of = timed(m, "repair.median_s")
    return Tile(
        *("repair", "Time to repair", SHOWN, value, f"{of}, median"),
        interval=f"All {words.count(m.n('repair.median_s'))} recorded repairs counted",
        means="The mean is [repair.mean_s]: few long repairs make most of the time.",
        link="nodes",
    )


def availability(m: Numbers) -> Tile | None:
    key = "outages.up.availability"
    if not m.has(key):
        return None
    by = "_clustered" if m.has("outages.up.ci_low_clustered") else ""
    ends = [f"outages.up.ci_{end}{by}" for end in ("low", "high")]
    return Tile(
        *("availability", "Availability", SHOWN, f"[{key}:near_one]", "of the time watched"),
        interval=f"95% CI {m.span(*ends, worded=words.near_one)}" if all(map(m.has, ends)) else "",
        means="The rest was lost in [outages.outages outage].",
        link="outages",
    )


@with_numbers
def excess(m: Numbers) -> Tile | None:
    if not m.value("lemons.tested", 0):
        return None
    name, title, link = "excess", "Nodes with excess failures", "nodes"
    if statement_rules.r11_no_power(m):
        could = "a node that fails five times as often as the others could be missed"
        means = f"{words.capital(statement_rules.why_no_finding(m))}: {could}."
        return Tile(name, title, WITHHELD, CANNOT, means=means, link=link)
    tested = "of [lemons.tested] tested"
    means = "No node has significantly more failures than expected."
    if m.has("lemons.share_of_failures") and m["lemons.lemons"]:
        means = "They account for [lemons.share_of_failures] of the failures."
    rate = "False-discovery rate controlled over the nodes tested"
    return Tile(name, title, SHOWN, "[lemons.lemons]", tested, rate, means, link=link)


def _hazard(m: Numbers, since: str = "with age") -> str:
    """Whether the hazard is constant, in a sentence."""
    verdict = m.value("lifetimes.verdict", "")
    if verdict not in ("falls", "rises"):
        return "A constant hazard is not rejected." if verdict == "constant" else ""
    way = "decreases" if verdict == "falls" else "increases"
    within = m.value("lifetimes.verdict_within", "") == verdict
    if not within:
        return f"Over all, the hazard {way} {since}; a mixture of unlike rates may look so."
    shape = " (Weibull shape [lifetimes.shape_within] within groups)" if m.has("lifetimes.shape_within") else ""
    return f"The hazard {way} {since}{shape}: no single MTTF fits all ages."


def _varies(m: Numbers, since: str) -> str:
    way = {"falls": "decreases", "rises": "increases"}.get(m.value("lifetimes.verdict", ""))
    return f"The hazard {way} {since}." if way else ""


def _of_rate(m: Numbers, ends: str, like: str) -> str:
    low, high = ends.format("low"), ends.format("high")
    if not m.has(low) or not m.has(high):
        return ""
    return f"90% CI {m.span(low, high, like)}{_proviso(m)}"


def _proviso(m: Numbers) -> str:
    return "" if m.has("sizes.rate.ci_low_clustered") else " if independent"


def _target(m: Numbers) -> str:
    """1,024-GPU."""
    return statement_rules.target(m).replace(" ", "-").replace(words.NO_BREAK, "-").removesuffix("s")


def _part(m: Numbers) -> str:
    """The badge of a trace of which most jobs did not end, or ended with no result recorded."""
    if not statement_rules.r9_few_ended(m):
        return ""
    return f"[outcomes.ended_share] {'with a result' if m.value('outcomes.unknown.jobs', 0) else 'ended'}"


def _few(failures: int) -> str:
    return "few events" if statement_rules.r8_few(failures) else ""


def _state(failures: int) -> str:
    return FEW if statement_rules.r8_few(failures) else SHOWN


def _mttf_target(m: Numbers, targets: Mapping) -> str:
    asked = {"mttf_h": 3600 * targets["mttf_h"]} if "mttf_h" in targets else {}
    ends = ("ettr.mttf_low_s", "ettr.mttf_high_s")
    return _at_least(m, "ettr.mttf_s", asked, "mttf_h", words.duration, ends)


def _at_most(m: Numbers, key: str, targets: Mapping, name: str, worded, ends: str) -> str:
    return _held(m, key, targets, name, worded, _ends(m, ends), met=lambda value, asked: value <= asked)


def _at_least(m: Numbers, key: str, targets: Mapping, name: str, worded, ends: tuple[str, str]) -> str:
    return _held(m, key, targets, name, worded, ends, met=lambda value, asked: value >= asked)


def _held(m: Numbers, key: str, targets: Mapping, name: str, worded, ends: tuple[str, ...], met) -> str:
    """Whether the target is met; where it lies within the interval, that the data do not decide it."""
    if name not in targets:
        return ""
    asked = targets[name]
    said = f"target {worded(asked)}: {'met' if met(m[key], asked) else 'missed'}"
    if ends and not all(end in m for end in ends):
        return f"{said} by the estimate, which has no interval"
    if ends and m[ends[0]] <= asked <= m[ends[1]]:
        return f"{said}, but within the interval"
    return said


def _ends(m: Numbers, ends: str) -> tuple[str, ...]:
    by = "_clustered" if m.has(ends.format("low_clustered")) else ""
    return ends.format(f"low{by}"), ends.format(f"high{by}")
