"""The page section on planned runs: its visible part, the planner's initial values, and the tables."""

from dataclasses import replace
from functools import partial

import polars as pl

from ttf.analyses.large_runs.plan_ettr import ETTR, ETTR_ASSUMPTIONS, MITIGATIONS
from ttf.display import statement_rules
from ttf.display.phrases import join_parts
from ttf.display.report_tables import Column, Formatter, PageTable, format_rows
from ttf.display.report_trace import Trace, list_nonempty_charts
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.engine.size_unit import UNITS
from ttf.stats.large_runs.plans import RATE_UNIT, rate_row

# Number of larger sizes in the table of mitigations, after that of the planned run.
LARGER_SIZES = 2
LONGEST_REASON = 160
RATE = "sizes.rate.failures_per_1000_node_days"
CENTURY_S = 100 * 31_557_600
DAY_S = 86_400
# Below this ratio a run makes almost no progress.
NO_PROGRESS = 0.001
_BASIS_LABELS = {
    "state": "the trace: states that name infrastructure",
    "event": "the trace: states and health events",
    "proxy": "the trace: any failure, cause unknown",
    "component": "the trace: failures of the machines",
}
_FORMAT_BY_UNIT: dict[str, Formatter] = {
    "s": words.duration,
    RATE_UNIT: lambda rate: f"{words.number(rate)} per 1,000 node-days",
    **{f"{unit}s": partial(words.plural, noun=unit) for unit in UNITS},
    "share": words.share,
}
_ANSWER_COLUMNS = {
    "ettr": "wall_clock_ettr",
    "scheduled": "scheduled_ettr",
    "wall": "wall_s",
    "interruptions": "interruptions",
}


def head(trace: Trace, m: Numbers) -> Head:
    """Return what the run of the target size can expect, or why that cannot be estimated."""
    rate_key = m.value("ettr.by")
    if rate_key and f"ettr.{rate_key}.wall_clock_ettr" in m:
        content = _make_planned_head(trace, m, f"ettr.{rate_key}")
    else:
        content = _make_components_head(trace, m) if _component_rate(trace, m) else _withheld_head(m)
    return replace(content, planner=planner(trace, m))


def lines(trace: Trace, m: Numbers) -> list[Line]:
    if m.value("ettr.measured.runs"):
        return []
    if not trace.has_jobs:
        return [Line("Queue and utilisation", "The trace holds component lifetimes, not jobs.", checked=False)]
    reason = "No run lasted long enough." if "ettr.measured.runs" in m else "No attempts of runs are recorded."
    return [Line("Measured ETTR of long runs", reason, checked=False)]


def _make_planned_head(trace: Trace, m: Numbers, rate_key: str) -> Head:
    run, ratio = _run_name(m), f"{rate_key}.wall_clock_ettr"
    low, high = _bound_keys(rate_key)
    n = f"[{ratio}:n failure]"
    label, share, wall = "Scheduled ETTR", f"{rate_key}.scheduled_ettr", f"wall-clock [{ratio}]"
    if share not in m:
        label, share, wall = "Wall-clock ETTR", ratio, m.value("ettr.no_interval", "")
    ci = m.interval(share, "90", missing="")
    keys = [Key(label, f"[{share}]", join_parts(ci, f"n = {n}", wall, by="; "))]
    if f"{rate_key}.interruptions" in m:
        period = f"one {statement_rules.frequency(m)} [ettr.mttf_s:duration]" if "ettr.mttf_s" in m else None
        bounds = f"{low}.interruptions", f"{high}.interruptions"
        ci = f"90% CI {m.span(*bounds)}" if all(key in m for key in bounds) else ""
        keys.append(Key("Interruptions", f"[{rate_key}.interruptions]", join_parts(ci, period, by="; ")))
    if "ettr.optimal_interval_s" in m and m.value("ettr.at_optimum", 0) >= NO_PROGRESS:
        keys.append(Key("Best checkpoint interval", "[ettr.optimal_interval_s]", "wall-clock ETTR [ettr.at_optimum]"))
    return Head(
        _format_claim(m, rate_key, run),
        charts=list_nonempty_charts(trace, "ettr_by_gpus"),
        keys=tuple(keys),
        text=_describe_measured_runs(m),
        callout=_choose_callout(m, rate_key, run),
        details="assumptions, all sizes, mitigations, measured runs",
    )


def _format_claim(m: Numbers, rate_key: str, run: str) -> str:
    wall, ratio = m.value(f"{rate_key}.wall_s", CENTURY_S), m[f"{rate_key}.wall_clock_ettr"]
    run = f"{words.capitalise(_run_article(m))} {run} run"
    if wall >= CENTURY_S or ratio < NO_PROGRESS:
        return f"{run} would make almost no progress: a failure {statement_rules.frequency(m)} [ettr.mttf_s:duration]"
    claim = f"{run} keeps [{statement_rules.ettr_key(m)}] of its scheduled time productive"
    if 2 * m.value(f"{rate_key}.queued_s", 0) > wall:
        return f"{claim}; each start waits [{rate_key}.queue_s] in the queue"
    if statement_rules.r13_long_runs_differ(m) or f"{rate_key}.interruptions" not in m:
        return claim
    return f"{claim}, with [{rate_key}.interruptions] interruptions"


def _choose_callout(m: Numbers, rate_key: str, run: str) -> Callout | None:
    """Return the main reservation: a different measured rate, no projection, or component failures only."""
    if statement_rules.r13_long_runs_differ(m):
        expected = m.span("ettr.measured_target.expected_low", "ettr.measured_target.expected_high")
        text = "[ettr.measured_target.runs run] of this size kept [ettr.measured_target.scheduled_ettr]"
        return Callout("care", "Measured differs.", f"{text} of their scheduled time; the model expects {expected}.")
    if m.value("sizes.check.p_value", 1) < 0.05:
        text = f"[sizes.check.observed] failures of {run} runs, [sizes.check.expected] expected from the other sizes"
        if not rate_key.endswith("measured_rate") and "ettr.measured_rate.scheduled_ettr" in m:
            text += "; at their own rate the scheduled ETTR is [ettr.measured_rate.scheduled_ettr]"
        return Callout("care", "Measured differs.", f"{text}.")
    if "ettr.withheld" in m:
        return Callout("care", "Measured, not projected.", f"{words.capitalise(m['ettr.withheld'])}.")
    if m.value("ettr.basis") == "component":
        return Callout("care", "Hardware only.", "Failures of software and users come on top.")
    if statement_rules.r14_lower_bound(m):
        return Callout("care", "At best.", "Only states name causes.")
    return None


_ETTR = "ETTR (effective training time ratio): the productive share of a run's time."


def _component_rate(trace: Trace, m: Numbers) -> float | None:
    """Return the measured failures of a component per 1,000 days, if the trace has no runs but failures."""
    return None if trace.has_jobs else m.value(RATE) or None


def _make_components_head(trace: Trace, m: Numbers) -> Head:
    unit = trace.info["unit"]
    untested = f"Whether the failure rate of a run grows in proportion to its {unit}s is not tested."
    return Head(
        f"The trace holds no runs: the planner starts from the measured rate of a {unit}",
        keys=(Key(f"Failures per 1,000 {unit}-days", f"[{RATE}]", f"[{RATE}:interval90]"),),
        text=(_ETTR,),
        callout=Callout("care", "No runs.", f"{untested} Failures of software and users come on top."),
        details="assumptions, bearable failure rate",
    )


def _withheld_head(m: Numbers) -> Head:
    """Return why a run of the target size cannot be planned, the data needed, and the measured runs."""
    reasons = {
        "proxy": "infrastructure failures are not recorded",
        "agrees": "no run was a quarter as large",
        "rejected": f"failures do not grow with the {_singular_size_unit(m)}s",
    }
    components = m.value("ettr.basis") == "component"
    sizes = "the trace holds no runs" if components else "too few sizes to test the 1/N law"
    key = "proxy" if m.value("ettr.basis") == "proxy" else m.value("sizes.law.verdict")
    reason = reasons.get(key, sizes)
    keys = []
    if m.value("ettr.measured.runs") and "ettr.measured.mean" in m:
        keys.append(
            Key("Measured wall-clock ETTR", "[ettr.measured.mean]", "mean of [ettr.measured.runs long run], any size")
        )
    needed = f"Needed: {m['ettr.needed']}." if "ettr.needed" in m else ""
    return Head(
        f"The ETTR of {_run_article(m)} {_run_name(m)} run cannot be estimated: {reason}",
        charts=("ettr_measured",) if keys else (),
        keys=tuple(keys),
        text=(_ETTR,),
        callout=Callout("stop", "Not estimated.", needed),
        details="assumptions, bearable failure rate",
    )


def _describe_measured_runs(m: Numbers) -> tuple[str, ...]:
    if not m.value("ettr.measured.runs"):
        return ()
    text = "[ettr.measured.runs long run] kept [ettr.measured.mean] of wall-clock time"
    if "ettr.measured.expected" in m:
        text += "; the model expects [ettr.measured.expected]"
    return (f"{text}.",)


def _singular_size_unit(m: Numbers) -> str:
    return m.value("ettr.unit", "GPUs").removesuffix("s")


def _run_name(m: Numbers) -> str:
    """Return the name of the run, such as 1,024-GPU."""
    return f"[ettr.assumed.size_of_the_run:count]-{_singular_size_unit(m)}"


def _run_article(m: Numbers) -> str:
    return words.article(m.words("ettr.assumed.size_of_the_run", "count"))


def _bound_keys(rate_key: str) -> tuple[str, str]:
    """Return the keys of the same value at the lower and at the upper bound of the failure rate."""
    return (f"{rate_key}_low", f"{rate_key}_high") if rate_key.endswith("measured_rate") else ("ettr.low", "ettr.high")


def planner(trace: Trace, m: Numbers) -> dict | None:
    """Return the initial state of the planner; None if a trace of components has nothing to plan with.

    unit: GPUs or nodes. of: what fails, a node or a GPU. node_gpus: GPUs of a node (1 if sizes are nodes). largest: the
    largest run, in `unit`. withheld: why the trace gives no failure rate to plan with, or None. Without a rate all
    answers are "–"; for the rate of a component, the page computes them when it opens. fields: size (gpus), failures
    per 1,000 node-days (rate), minutes (interval, write, restart) and days (queue for each start, work); spares if
    `down` is known. said: the answers at these values, as texts of `ttf.display.phrases`. down: shares of the time with
    0, 1, 2 ... units down at once; None if unknown.
    """
    row, rate_key = rate_row(trace.table("node_failure_rate")), f"ettr.{m.value('ettr.by')}"
    has_plan = f"{rate_key}.wall_clock_ettr" in m
    node_gpus = int(row["node_gpus"] or 1)
    largest = int(row["largest_run_nodes"] or 0) * node_gpus
    rate = m.value("ettr.assumed.failure_rate") if has_plan else _component_rate(trace, m)
    if rate_key.endswith("measured_rate") and has_plan:
        rate = 1000 * DAY_S / (m["ettr.nodes"] * m["ettr.mttf_s"])
    durations = {name: m[f"ettr.assumed.{key}"] for name, key in _FIELDS.items()}
    fields = {"gpus": int(m["ettr.assumed.size_of_the_run"]), "rate": None if rate is None else _round4(rate)}
    fields |= {name: _round4(seconds / (60 if name in _MINUTES else DAY_S)) for name, seconds in durations.items()}
    down = _down_at_once(trace, m)
    if not (trace.has_jobs or rate is not None or down):
        return None
    fields |= {"spares": 0} if down else {}
    answers = {name: f"{rate_key}.{key}" for name, key in _ANSWER_COLUMNS.items()}
    answers |= {"mttf": "ettr.mttf_s", "best": "ettr.optimal_interval_s"}
    reason = f"{words.capitalise(m.value('ettr.withheld', 'the failure rate is not known'))}."
    return {
        "unit": m.value("ettr.unit", "GPUs"),
        "node_gpus": node_gpus,
        "largest": largest,
        "of": "GPU" if trace.info["unit"] == "GPU" else "node",
        "withheld": reason if rate is None else None,
        "fields": fields,
        "said": {name: f"[{key}]" if has_plan and key in m else "–" for name, key in answers.items()},
        "down": down,
    }


def _down_at_once(trace: Trace, m: Numbers) -> dict | None:
    """Return the number of units a run may use (`size_spares`), and shares of the time with 0, 1, 2 ... down."""
    if "capacity.nodes" not in m:
        return None
    stratum = trace.table("spares_needed")["stratum"][0]
    rows = trace.table("units_down").filter(stratum=stratum, outages="all").filter(pl.col("time_s") > 0)
    shares = [0.0] * (rows.select(pl.col("down").max()).item() + 1)
    for down, share in rows.select("down", "time_share").iter_rows():
        shares[down] = _round4(share)
    return {"units": round(rows["units"][0]), "shares": shares}


_FIELDS = {
    "interval": "checkpoint_interval",
    "write": "checkpoint_write",
    "restart": "start-up",
    "queue": "queue",
    "work": "work_of_the_run",
}
_MINUTES = ("interval", "write", "restart")


def _round4(value: float) -> float:
    """Round to four significant digits."""
    return float(f"{value:.4g}")


def tables(trace: Trace) -> dict[str, PageTable]:
    assumptions, ettr = trace.table("ettr_assumptions"), trace.table("ettr")
    values = dict(assumptions.select("assumption", "amount").iter_rows())
    size, size_column = values["size of the run"], pl.coalesce("gpus", "nodes")
    if trace.has_jobs and not ettr.filter(size_column == size)["ettr_renewal"].count():
        # The rate is withheld: the planner starts without it.
        assumptions = assumptions.filter(~pl.col("assumption").str.starts_with("failure rate"))
    page_tables = {"ettr-assumptions": _assumptions_table(assumptions)}
    plans = ettr.with_columns(trace.table("ettr_outlook")["scheduled_ettr"])
    plans = plans.filter(rate="estimate", checkpoint_interval_s=values["checkpoint interval"])
    rows = plans.drop_nulls("ettr_renewal")
    if rows.height > 1:
        simulated = format_rows(rows, ("ettr_simulated", "ettr_simulated_se"), _format_with_error)
        rows = rows.with_columns(ettr_simulated=simulated)
        columns: dict[str, Column] = {
            "gpus" if ettr["gpus"].count() else "nodes": None,
            "mttf_s": None,
            "scheduled_ettr": ("Of scheduled time", words.share),
            "ettr_renewal": ("Of wall-clock time", words.share),
            "ettr_simulated": ("Simulated", str),
            "optimal_interval_s": None,
        }
        page_tables["ettr"] = PageTable(rows, columns, ETTR)
    gains = trace.table("mitigations").drop_nulls("ettr_after").filter(size_column >= size)
    if gains.height:
        sizes = gains.select(size_column.unique().sort().head(1 + LARGER_SIZES)).to_series()
        unit = "GPU" if gains["gpus"].count() else "node"
        gains = gains.filter(size_column.is_in(sizes.implode())).with_columns(
            size_label=pl.format(f"{{}} {unit}s", size_column.map_elements(words.count, return_dtype=pl.String))
        )
        names = ("mitigation", "ettr_before", "ettr_after", f"{unit.lower()}_hours_saved_per_productive_week")
        page_tables["mitigations"] = PageTable(gains, names, MITIGATIONS, "size_label")
    return page_tables


def _format_with_error(ratio: float, error: float | None) -> str:
    return words.share(ratio) + ("" if error is None else f" ± {words.number(100 * error, 1)}")


def _assumptions_table(assumptions: pl.DataFrame) -> PageTable:
    amounts = format_rows(assumptions, ("amount", "unit"), lambda amount, unit: _FORMAT_BY_UNIT[unit](amount))
    assumptions = assumptions.with_columns(amount=amounts, source=pl.col("source").replace(_BASIS_LABELS))
    columns = {"assumption": None, "amount": ("Value", str), "n": None, "source": None, "reason": "Note"}
    return PageTable(assumptions, columns, ETTR_ASSUMPTIONS, longest=LONGEST_REASON)
