"""Tiles of the first screen: six for a trace with jobs, up to seven for component lifetimes."""

from collections.abc import Callable, Mapping
from operator import ge, le

from ttf.analyses.outages.measure_availability import OUTAGE_FREE
from ttf.analyses.time_to_failure.fit_mttf import SURVIVAL_AT
from ttf.display import statement_rules
from ttf.display.brief_model import FEW, SHOWN, WITHHELD, Tile
from ttf.display.metrics import Tables
from ttf.display.phrases import (
    cost_text,
    fraction,
    hazard_scale,
    is_repaired,
    join_parts,
    noun,
    split_duration,
)
from ttf.display.trace_numbers import Numbers, find_bounds
from ttf.engine import words
from ttf.engine.size_unit import GPU
from ttf.page.brief import mini_charts

CANNOT = "Cannot be estimated from this trace"
CONDITIONS = 4
# Above this share of jobs without a GPU, the tile on GPU time mentions them.
MANY_WITHOUT_GPU = 0.1
_MISSING_ENDS = "[without_end.without_end] of [without_end.failures failure]"


def tiles(m: Numbers, inputs: Tables, trace_info: Mapping) -> tuple[Tile, ...]:
    make = _job_tiles if trace_info["gives"] == "jobs" else _component_tiles
    return tuple(tile for tile in make(m, inputs, trace_info) if tile)


def _job_tiles(m: Numbers, inputs: Tables, trace_info: Mapping) -> list[Tile | None]:
    unit, targets = trace_info["unit"], trace_info.get("targets") or {}
    return [
        failure_rate(m, unit, targets),
        failed_gpu_time(m, unit, targets),
        node_rate(m, inputs, targets),
        mttf_at_target(m, inputs, targets),
        ettr(m, targets),
        failure_time(m, inputs, trace_info),
    ]


def _component_tiles(m: Numbers, inputs: Tables, trace_info: Mapping) -> list[Tile | None]:
    unit, targets = trace_info["unit"], trace_info.get("targets") or {}
    return [
        annual_rate(m, unit),
        node_rate(m, inputs, targets, unit),
        mean_time_to_failure(m, trace_info),
        failure_time(m, inputs, trace_info),
        repair_time(m),
        availability(m),
        nodes_with_excess(m),
    ]


def failure_rate(m: Numbers, unit: str, targets: Mapping) -> Tile:
    name, key = "failure_rate", "outcomes.failure_share"
    title, link = f"{words.capitalise(unit)} failure rate", "outcomes"
    if key not in m:
        return Tile(name, title, WITHHELD, CANNOT, means=f"No {unit} has ended in success or failure.", link=link)
    means = f"Cancelled, running and waiting {unit}s are not counted."
    if share := fraction(m, key):
        means = f"About {share} ended {unit}s failed."
    if m.value("outcomes.timeouts"):
        means = (
            f"Excluding the [outcomes.timeouts {unit}] that reached a time limit: "
            "[outcomes.failure_share_without_timeout]."
        )
    if statement_rules.r9_few_ended(m):
        means = f"Only [outcomes.ended_share] of [data.jobs] {unit}s ended with a recorded result."
        if "outcomes.failure_share_at_least" in m:
            bounds = m.span("outcomes.failure_share_at_least", "outcomes.failure_share_at_most")
            means += f" Including those with an unknown result: {bounds}."
    return Tile(
        *(name, title, _state(m.value("outcomes.failure.jobs", 0)), f"[{key}]", f"of ended {unit}s"),
        interval=join_parts(m.interval(key, missing=""), "n = [outcomes.ended]"),
        means=means,
        badge=_badge_few_ended(m) or _badge_few_failures(m.value("outcomes.failure.jobs", 0)),
        link=link,
        mini=mini_charts.outcome_bar(m),
        target=_target_text(m, key, targets, "failure_rate", words.share, le),
    )


def failed_gpu_time(m: Numbers, unit: str, targets: Mapping) -> Tile | None:
    key = "lost_work.failed_gpu_hours_share"
    if key not in m or statement_rules.r12_few_gpus(m):
        return None
    sample_note = "n = [lost_work.runs attempt]" if "lost_work.runs" in m else ""
    if m.value("lost_work.failed_without_time"):
        verbs = "failed attempt lacks a run time and counts|failed attempts lack a run time and count"
        sample_note = f"[lost_work.failed_without_time {verbs}] as 0"
    bound_sign = "≥ " if statement_rules.is_failed_time_bound(m) else ""
    if m.size == GPU and m.value("data.jobs_without_gpu", 0) > MANY_WITHOUT_GPU * m["data.jobs"]:
        sample_note += f"; [data.jobs_without_gpu {unit}] had no GPU"
    if m.value("outcomes.running.gpu_hours_share", 0.0) > 0.5:
        means = (
            f"{words.capitalise(unit)}s still running account for [outcomes.running.gpu_hours_share] of the GPU time."
        )
    elif "failed_time.infra.share" in m:
        cause = max(("limit", "infra", "other"), key=lambda part: m[f"failed_time.{part}.share"])
        subjects = {"limit": "Time limits", "infra": "Infrastructure failures", "other": "Other failures"}
        means = f"{subjects[cause]} account for [failed_time.{cause}.share] of it."
    else:
        means = "Causes are not recorded, so program errors and hardware faults count together."
    if cost := cost_text(m, "failed_time.all.cost"):
        means += f" Cost: {bound_sign}{cost}."
    return Tile(
        *("failed_gpu_time", "GPU time in failed attempts", SHOWN, bound_sign + f"[{key}]"),
        "of [lost_work.gpu_hours] GPU-h",
        interval=join_parts(m.interval(key, missing=""), sample_note),
        means=means,
        badge="lower bound" if bound_sign else _badge_few_ended(m),
        link="lost",
        mini=mini_charts.failed_time_bar(m),
        target=_target_text(m, key, targets, "failed_gpu_time", words.share, le),
    )


def node_rate(m: Numbers, inputs: Tables, targets: Mapping, unit: str = "node", confidence: str = "90") -> Tile:
    name, link, key = "node_rate", "nodes", "sizes.rate.failures_per_1000_node_days"
    is_any_failure = statement_rules.r1_cause_unknown(m)
    title = "Failure rate per node" if is_any_failure else "Infrastructure failure rate"
    if m.value("sizes.basis", "component" if "data.outages" in m else "") == "component":
        title = f"Failure rate per {unit}"
    rate_unit = f"per 1,000 {unit}-days"
    if key not in m and "sizes.rate.ci_high" not in m:
        unknown = f"the number of {unit}s observed is unknown"
        reason = m.value("sizes.rate.reason", unknown if "data.outages" in m else "no node was seen in use")
        return Tile(name, title, WITHHELD, CANNOT, means=f"{words.capitalise(reason)}.", link=link)
    failures = m["sizes.rate.failures"]
    if statement_rules.r7_no_failures(m):
        observed = f"95% confidence · 0 failures in [sizes.rate.node_days] {unit}-days"
        means = (
            f"No failure was observed. The true rate may be zero or up to [sizes.rate.ci_high].{_gpus_a_node_note(m)}"
        )
        return Tile(name, title, SHOWN, "< [sizes.rate.ci_high]", rate_unit, observed, means, "upper bound", link)
    is_of_large_jobs = m.value("sizes.rate.above_gpus", 0)
    sample_note = "[sizes.rate.failures failure]"
    all_failures = "lost_work.infra_failures"
    if is_of_large_jobs and m.value(all_failures, 0) > failures:
        # Both counts are of the same failures; the rate uses those of large jobs.
        sample_note = f"[sizes.rate.failures] of [{all_failures} failure]"
    if is_of_large_jobs:
        sample_note += ", jobs > [sizes.rate.above_gpus] GPUs"
    means = f"One failure per {unit} {statement_rules.frequency(m)} [sizes.rate.days_per_failure:number] days of use."
    if is_any_failure:
        means = "The rate includes user errors, so it is not comparable with infrastructure rates."
    if statement_rules.r14_lower_bound(m):
        means += f" {statement_rules.STATES_ONLY}"
    means += _gpus_a_node_note(m)
    return Tile(
        *(name, title, _state(failures), f"[{key}]", rate_unit),
        interval=join_parts(m.interval(key, confidence, missing=""), sample_note),
        means=means,
        badge="any failure" if is_any_failure else _badge_few_failures(failures) or _badge_bound(m, "lower bound"),
        link=link,
        mini=mini_charts.rate_line(m, inputs),
        target=_target_text(m, key, targets, "node_rate", words.number, le),
    )


def _gpus_a_node_note(m: Numbers) -> str:
    return " Assumes [sizes.node_gpus] GPUs per node." if m.value("sizes.node_gpus_from", "") == "default" else ""


def mttf_at_target(m: Numbers, inputs: Tables, targets: Mapping) -> Tile:
    title, link = f"MTTF of {statement_rules.target_adjective(m)} job", "scaling"
    if withheld := statement_rules.find_withheld_reasons(m):
        unmet = f"{len(withheld.reasons)} of {CONDITIONS} conditions not met"
        meaning = " ".join(f"{words.capitalise(reason)}." for reason in withheld.reasons)
        needs = f"Needed: {withheld.needed}." if withheld.needed else ""
        return Tile("mttf", title, WITHHELD, CANNOT, "", unmet, meaning, "not estimated", link, needs)
    value, unit = split_duration(m, "ettr.mttf_s")
    failures = m.n(f"ettr.{m['ettr.by']}.wall_clock_ettr") or 0
    is_measured = m["ettr.by"] == "measured_rate"
    basis = f"{words.plural(failures, 'failure')} at this size" if is_measured else "1/N projection"
    meaning = "The model assumes a constant failure rate proportional to the number of nodes."
    badge = "projection" if statement_rules.is_projection(m) else _badge_few_failures(failures)
    badge = badge or _badge_bound(m, "at best")
    if statement_rules.is_projection(m):
        meaning = "No run was larger than [sizes.largest_run.gpus] GPUs."
    if statement_rules.r5_measured_differs(m):
        badge = "measured differs"
        meaning = "[sizes.check.observed failure] observed, [sizes.check.expected] expected"
        if "ettr.measured_rate.mttf_s" in m:
            meaning += "; the observed MTTF is [ettr.measured_rate.mttf_s]"
        meaning += "."
    meaning += _gpus_a_node_note(m)
    targets_s = {"mttf_h": 3600 * targets["mttf_h"]} if "mttf_h" in targets else {}
    return Tile(
        *("mttf", title, _state(failures), f"{'≤ ' if statement_rules.r14_lower_bound(m) else ''}{value}", unit),
        interval=join_parts(_format_rate_interval(m), basis),
        means=meaning,
        badge=badge,
        link=link,
        mini=mini_charts.mttf_curve(m, inputs),
        target=_target_text(m, "ettr.mttf_s", targets_s, "mttf_h", words.duration, ge),
    )


def ettr(m: Numbers, targets: Mapping) -> Tile:
    days = m.value("ettr.assumed.work_of_the_run", 0) / 86_400
    title, link = f"ETTR, {statement_rules.target(m)} for {days:g} days", "large-runs"
    if statement_rules.find_withheld_reasons(m):
        unmet = f"Depends on the MTTF of {statement_rules.target_adjective(m)} job"
        means = "Enter a failure rate in the planner."
        return Tile("ettr", title, WITHHELD, CANNOT, "", unmet, means, "not estimated", link)
    model, key = f"ettr.{m['ettr.by']}", statement_rules.ettr_key(m)
    failures = m.n(f"{model}.wall_clock_ettr") or 0
    name = key.rpartition(".")[2]
    is_scheduled = name == "scheduled_ettr"
    time_base = "of scheduled time" if is_scheduled else "of wall-clock time"
    title = f"{'Scheduled' if is_scheduled else 'Wall-clock'} {title}"
    if statement_rules.r13_long_runs_differ(m):
        failures, badge = m["ettr.measured_target.runs"], "measured"
        sizes = m.span("ettr.measured_target.gpus_low", "ettr.measured_target.gpus_high")
        ci = join_parts(m.interval(key, missing=""), f"[ettr.measured_target.runs run] of {sizes} GPUs")
        expected = m.span("ettr.measured_target.expected_low", "ettr.measured_target.expected_high")
        means = f"The model expects {expected} of these runs."
        means += " Each start waited [ettr.measured_target.queue_s] in the queue."
    else:
        ci = m.interval(key, "90", missing="")
        interruptions = f"[{model}.interruptions] interruptions" if f"{model}.interruptions" in m else ""
        ci, badge, means = join_parts(ci, interruptions), _badge_few_failures(failures), ""
        if m.value(f"{model}.queue_s"):
            means = f"Each start queues [{model}.queue_s]; the wall-clock ETTR is [{model}.wall_clock_ettr]."
        if statement_rules.is_projection(m):
            badge = "projection"
        badge = badge or _badge_bound(m, "at best")
        if statement_rules.r5_measured_differs(m):
            badge = "measured differs"
            if "ettr.measured_rate.scheduled_ettr" in m:
                means += " With the measured MTTF it is [ettr.measured_rate.scheduled_ettr] of scheduled time."
    means += _describe_habits(m)
    return Tile(
        *("ettr", title, _state(failures), f"[{key}]", time_base),
        interval=ci,
        means=means.strip(),
        badge=badge,
        link=link,
        mini=None if badge == "measured" else mini_charts.scheduled_time_bar(m),
        target=_target_text(m, key, targets, name, words.share, ge),
    )


_HABITS = {"checkpoint_interval": "checkpoint interval", "checkpoint_write": "write", "restart": "start-up"}


def _describe_habits(m: Numbers) -> str:
    """Say which checkpoint times logs of training runs tell, and which are assumed."""
    measured = {name: bool(m.value(f"training.{name}_s", 0)) for name in _HABITS}
    if not any(measured.values()):
        return " Checkpoint times are assumed."
    if all(measured.values()):
        return " Checkpoint times are measured in [training.runs run]."
    known, assumed = (
        words.join_list([_HABITS[name] for name in _HABITS if measured[name] is is_known]) for is_known in (True, False)
    )
    return f" Measured in [training.runs run]: {known}; assumed: {assumed}."


def failure_time(m: Numbers, inputs: Tables, trace_info: Mapping) -> Tile | None:
    """Return the tile on when failures occur: the median, or a range of the mean if many failures have no end."""
    unit, link, mini = trace_info["unit"], "time-to-failure", mini_charts.survival_steps(m, inputs)
    if statement_rules.r6_ends_unknown(m):
        return _mean_time_range(m, trace_info, link)
    key = "outcomes.failure.runtime_median_s"
    if key in m:
        value, unit_text = split_duration(m, key)
        count_key, failures = "outcomes.failure.with_runtime", m["outcomes.failure.with_runtime"]
        means, is_limit = _hazard_sentence(m), m[key] in [m[limit] for limit in statement_rules.limit_keys(m)]
        if is_limit:
            means = f"The median equals a time limit, at which many {unit}s end."
        elif statement_rules.r10_steps(m):
            means = (
                f"[survival.steps.time_limits {unit}] hit their time limit at [survival.steps.time_s], so survival "
                "drops by [survival.steps.drop] there."
            )
        return Tile(
            *("when", f"When {unit}s fail", _state(failures), value, f"{unit_text}, median failed {unit}"),
            interval=join_parts(m.interval(key, missing=""), f"n = [{count_key} failure]"),
            means=means,
            badge="time limit" if is_limit else _badge_few_ended(m),
            link=link,
            mini=mini,
        )
    table, key, lasting = SURVIVAL_AT, "survival.1y.survival", "last a year"
    if is_repaired(trace_info):
        table, key, lasting = OUTAGE_FREE, "free.1y.share", "go a year without outage"
        # The survival curve is of gaps between outages and does not show this share.
        mini = None
    if key in m:
        unit_text = f"of {words.plural_noun(noun(table, trace_info))} {lasting}"
        return Tile(
            *("when", f"When {unit}s fail", SHOWN, f"[{key}]", unit_text),
            interval=join_parts(m.interval(key, missing=""), "[survival.events failure]"),
            means=_hazard_sentence(m, hazard_scale(trace_info)),
            link=link,
            mini=mini,
        )
    return None


def _mean_time_range(m: Numbers, trace_info: Mapping, link: str) -> Tile:
    low_key, high_key = "mttf.range.low_s", "mttf.range.high_s"
    if not m[high_key]:
        reason = "No run time is known, as starts or ends are not recorded."
        if trace_info["gives"] == "durations":
            reason = f"The number of {trace_info['unit']}s watched is unknown."
        return Tile("when", "Mean time to failure", WITHHELD, CANNOT, means=reason, link=link)
    value = m.span(low_key, high_key, high_key)
    means = "The range covers every value that missing ends and open records allow."
    return Tile(
        *("when", "Mean time to failure", SHOWN, value, "", f"{_MISSING_ENDS} have no recorded end", means),
        badge="range",
        link=link,
    )


def annual_rate(m: Numbers, unit: str) -> Tile | None:
    key = "afr.afr"
    if key not in m:
        return None
    return Tile(
        *("afr", "Annual failure rate", _state(m["afr.failures"]), f"[{key}]%", f"of {words.plural_noun(unit)} a year"),
        interval=join_parts(m.interval(key, missing=""), "[afr.failures failure]"),
        means="Observed for [period.days day], scaled to a year.",
        link="time-to-failure",
    )


def mean_time_to_failure(m: Numbers, trace_info: Mapping) -> Tile | None:
    if "mttf.mttf_s" not in m:
        return None
    (value, unit_text), trend = split_duration(m, "mttf.mttf_s"), _format_hazard_trend(m, hazard_scale(trace_info))
    return Tile(
        *("mttf", "Mean time to failure", _state(m["mttf.events"]), value, f"{unit_text} of service"),
        interval=join_parts(m.interval("mttf.mttf_s", missing=""), "[mttf.events failure]"),
        means=f"Time at risk divided by failures, over all {trace_info['unit']}s. {trend}".strip(),
        link="time-to-failure",
    )


def repair_time(m: Numbers) -> Tile | None:
    if "repair.median_s" not in m:
        return None
    value, unit_text = split_duration(m, "repair.median_s")
    is_skewed = m.value("outages.repair.longest_share", 0.0) > statement_rules.MOSTLY
    share = "; the longest tenth of the outages hold [outages.repair.longest_share] of the time down" * is_skewed
    return Tile(
        *("repair", "Time to repair", SHOWN, value, f"{unit_text}, median"),
        interval="All [repair.median_s:n] recorded repairs counted",
        means=f"The mean is [repair.mean_s]{share}.",
        link="nodes",
    )


def availability(m: Numbers) -> Tile | None:
    key = "outages.up.availability"
    if key not in m:
        return None
    bounds = _find_closed_bounds(m, key)
    return Tile(
        *("availability", "Availability", SHOWN, f"[{key}:near_one]", "of the observed time"),
        interval=f"95% CI {m.span(*bounds, format_value=words.near_one)}" if bounds else "",
        means="The rest is the time down of [outages.outages outage].",
        link="outages",
    )


def nodes_with_excess(m: Numbers) -> Tile | None:
    if not m.value("lemons.tested"):
        return None
    name, title, link = "excess", "Nodes with excess failures", "nodes"
    if statement_rules.r11_no_power(m):
        means = f"{words.capitalise(statement_rules.cannot_tell(m))}."
        return Tile(name, title, WITHHELD, CANNOT, means=means, link=link)
    means = "No node has significantly more failures than expected."
    if "lemons.share_of_failures" in m and m["lemons.lemons"]:
        means = "They account for [lemons.share_of_failures] of the failures."
    method = "False-discovery rate controlled over the nodes tested"
    return Tile(name, title, SHOWN, "[lemons.lemons]", "of [lemons.tested] tested", method, means, link=link)


def _hazard_sentence(m: Numbers, since: str = "with age") -> str:
    """Return a sentence on whether the hazard is constant."""
    verdict = m.value("lifetimes.verdict", "")
    if verdict not in ("falls", "rises"):
        return "A constant hazard is not rejected." if verdict == "constant" else ""
    change = "decreases" if verdict == "falls" else "increases"
    if m.value("lifetimes.verdict_within", "") != verdict:
        return f"Overall, the hazard {change} {since}; groups with different constant rates can look the same."
    shape = " (Weibull shape [lifetimes.shape_within] within groups)" if "lifetimes.shape_within" in m else ""
    return f"The hazard {change} {since}{shape}: no single MTTF fits all ages."


def _format_hazard_trend(m: Numbers, since: str) -> str:
    change = {"falls": "decreases", "rises": "increases"}.get(m.value("lifetimes.verdict", ""))
    return f"The hazard {change} {since}." if change else ""


def _format_rate_interval(m: Numbers) -> str:
    if not (bounds := _find_closed_bounds(m, "ettr.mttf_s")):
        return ""
    proviso = "" if "sizes.rate.ci_low_clustered" in m else " if independent"
    return f"90% CI {m.span(*bounds, 'ettr.mttf_s')}{proviso}"


def _badge_bound(m: Numbers, badge: str) -> str:
    return badge if statement_rules.r14_lower_bound(m) else ""


def _badge_few_ended(m: Numbers) -> str:
    if not statement_rules.r9_few_ended(m):
        return ""
    return f"[outcomes.ended_share] {'with a result' if m.value('outcomes.unknown.jobs', 0) else 'ended'}"


def _badge_few_failures(failures: int) -> str:
    return "few events" if statement_rules.r8_few(failures) else ""


def _state(failures: int) -> str:
    """Return FEW or SHOWN, by the number of failures."""
    return FEW if statement_rules.r8_few(failures) else SHOWN


def _target_text(
    m: Numbers,
    key: str,
    targets: Mapping,
    name: str,
    format_value: Callable[[float], str],
    is_met: Callable[[float, float], bool],
) -> str:
    """Return whether the target is met, and whether the interval includes it."""
    if name not in targets:
        return ""
    target = targets[name]
    text = f"target {format_value(target)}: {'met' if is_met(m[key], target) else 'missed'}"
    bounds = _find_closed_bounds(m, key)
    if not bounds:
        return f"{text} by the estimate, which has no interval"
    if m[bounds[0]] <= target <= m[bounds[1]]:
        return f"{text}, but the interval includes it"
    return text


def _find_closed_bounds(m: Numbers, key: str) -> tuple[str, str] | None:
    """Return the keys of the bounds of a number's interval, the clustered one if it is known, or None."""
    bounds = next(find_bounds(m, key), None)
    return (bounds.low, bounds.high) if bounds and bounds.low in m and bounds.high in m else None
