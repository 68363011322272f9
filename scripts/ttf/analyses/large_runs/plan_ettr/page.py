"""What a planned run can expect, in the report: the finding, the planner's start, and the tables."""

from dataclasses import replace
from functools import partial

import polars as pl

from ttf.analyses.large_runs.plan_ettr import ETTR, ETTR_ASSUMPTIONS, MITIGATIONS
from ttf.display.phrases import joined, with_numbers
from ttf.display.report_tables import Shown, texts
from ttf.display.report_trace import Trace, drawn_charts
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.engine.size_unit import UNITS
from ttf.stats.large_runs.plans import RATE_UNIT, rate_row

# Sizes of the table of mitigations: that of the run planned, and so many larger ones.
LARGER_SIZES = 2
LONGEST_REASON = 160
# Later nobody waits for the end of a run.
RATE = "sizes.rate.failures_per_1000_node_days"
CENTURY_S = 100 * 31_557_600
DAY_S = 86_400
# Below, a run makes next to no headway.
NO_HEADWAY = 0.001
_BASES = {
    "state": "the trace: states that name infrastructure",
    "event": "the trace: states and health events",
    "proxy": "the trace: any failure, cause unknown",
    "component": "the trace: failures of the machines",
}
_WORDED = {
    "s": words.duration,
    RATE_UNIT: lambda rate: f"{words.number(rate)} per 1,000 node-days",
    **{f"{unit}s": partial(words.plural, one=unit) for unit in UNITS},
    "share": words.share,
}
_ANSWERS = {"ettr": "ettr", "scheduled": "scheduled_share", "wall": "wall_s", "interruptions": "interruptions"}


@with_numbers
def head(trace: Trace, m: Numbers) -> Head:
    """The run of the target size: what it can expect, or why that cannot be estimated."""
    by = m.value("ettr.by", None)
    if by and m.has(f"ettr.{by}.ettr"):
        found = _planned(trace, m, f"ettr.{by}")
    else:
        found = _of_components(trace, m) if _component_rate(trace, m) else _withheld(m)
    return replace(found, planner=planner(trace, m))


@with_numbers
def lines(trace: Trace, m: Numbers) -> list[Line]:
    if m.value("ettr.measured.runs", 0):
        return []
    if not trace.has_jobs:
        return [Line("Queue and utilisation", "Lifetimes of components hold no jobs.", checked=False)]
    why = "No run lasted long enough." if m.has("ettr.measured.runs") else "No attempts of runs are recorded."
    return [Line("Measured ETTR of long runs", why, checked=False)]


def _planned(trace: Trace, m: Numbers, by: str) -> Head:
    run, ratio = _run(m), f"{by}.ettr"
    low, high = _ends(by)
    n = words.plural(m.n(ratio), "failure")
    ci = m.keyed_interval(f"{ratio}_ci_{{}}", confidence="90") or m.value("ettr.no_interval", "")
    keys = [Key("ETTR (wall-clock)", f"[{ratio}]", joined(ci, f"n = {n}", by="; "))]
    if m.has(f"{by}.interruptions"):
        every = "one every [ettr.mttf_s]" if m.has("ettr.mttf_s") else None
        ends = f"{low}.interruptions", f"{high}.interruptions"
        ci = f"90% CI {m.span(*ends)}" if all(map(m.has, ends)) else ""
        keys.append(Key("Interruptions", f"[{by}.interruptions]", joined(ci, every, by="; ")))
    if m.has("ettr.optimal_interval_s") and m.value("ettr.at_optimum", 0) >= NO_HEADWAY:
        best = "ETTR [ettr.at_optimum] with it"
        keys.append(Key("Best checkpoint interval", "[ettr.optimal_interval_s]", best))
    return Head(
        _claim(m, by, run),
        charts=drawn_charts(trace, "ettr_by_gpus"),
        keys=tuple(keys),
        text=_measured(m),
        callout=_callout(m, by, run),
        details="assumptions, all sizes, mitigations, measured runs",
    )


def _claim(m: Numbers, by: str, run: str) -> str:
    wall, ratio = m.value(f"{by}.wall_s", CENTURY_S), m[f"{by}.ettr"]
    run = f"{words.capital(_article(m))} {run} run"
    if wall >= CENTURY_S or ratio < NO_HEADWAY:
        return f"{run} would make almost no progress: a failure every [ettr.mttf_s]"
    if 2 * m.value(f"{by}.queued_s", 0) > wall:
        share, wait = f"[{by}.scheduled_share]", f"[{by}.queue_s]"
        return f"{run} keeps {share} of its scheduled time productive; each start waits {wait} in the queue"
    times = f"[{by}.interruptions]" if m.has(f"{by}.interruptions") else "some"
    return f"{run} keeps [{by}.ettr] of its time productive, with {times} interruptions"


def _callout(m: Numbers, by: str, run: str) -> Callout | None:
    """What weighs most: runs of this size failed differently; no projection; beyond the largest run; machines alone."""
    if m.value("sizes.check.p_value", 1) < 0.05:
        text = f"[sizes.check.observed] failures of {run} runs, [sizes.check.expected] expected from the other sizes"
        if not by.endswith("measured_rate") and m.has("ettr.measured_rate.ettr"):
            text += "; at their own rate ETTR is [ettr.measured_rate.ettr]"
        return Callout("care", "Measured differs.", f"{text}.")
    if m.has("ettr.withheld"):
        return Callout("care", "Measured, not projected.", f"{words.capital(m['ettr.withheld'])}.")
    if m.value("ettr.basis", None) == "component":
        return Callout("care", "Hardware only.", "Failures of software and users come on top.")
    return None


_ETTR = "ETTR (effective training time ratio): the productive share of wall-clock time."


def _component_rate(trace: Trace, m: Numbers) -> float | None:
    """The measured failures of a component per 1,000 days, where the trace has no runs and some component failed."""
    return None if trace.has_jobs else m.value(RATE, None) or None


def _of_components(trace: Trace, m: Numbers) -> Head:
    unit = trace.about["unit"]
    untested = f"That a run on many {unit}s fails as many times as often is not tested."
    return Head(
        f"The trace holds no runs: the planner starts from the measured rate of a {unit}",
        keys=(Key(f"Failures per 1,000 {unit}-days", f"[{RATE}]", m.interval("sizes.rate.ci_{}", confidence="90")),),
        text=(_ETTR,),
        callout=Callout("care", "No runs.", f"{untested} Failures of software and users come on top."),
        details="assumptions, bearable failure rate",
    )


def _withheld(m: Numbers) -> Head:
    """Why a run of the target size cannot be planned, and what data it takes; the runs that were measured beside."""
    reasons = {
        "proxy": "infrastructure failures are not recorded",
        "agrees": "no run was a quarter as large",
        "rejected": f"failures do not grow with the {_unit(m)}s",
    }
    components = m.value("ettr.basis", None) == "component"
    sizes = "the trace holds no runs" if components else "too few sizes to test the 1/N law"
    kind = "proxy" if m.value("ettr.basis", None) == "proxy" else m.value("sizes.law.verdict", None)
    why = reasons.get(kind, sizes)
    keys = []
    if m.value("ettr.measured.runs", 0) and m.has("ettr.measured.mean"):
        runs = "[ettr.measured.runs long run]"
        keys.append(Key("Measured ETTR", "[ettr.measured.mean]", f"mean of {runs}, any size"))
    needed = f"Needed: {m['ettr.needed']}." if m.has("ettr.needed") else ""
    return Head(
        f"The ETTR of {_article(m)} {_run(m)} run cannot be estimated: {why}",
        charts=("ettr_measured",) if keys else (),
        keys=tuple(keys),
        text=(_ETTR,),
        callout=Callout("stop", "Not estimated.", needed),
        details="assumptions, bearable failure rate",
    )


def _measured(m: Numbers) -> tuple[str, ...]:
    if not m.value("ettr.measured.runs", 0):
        return ()
    runs = "[ettr.measured.runs long run]"
    text = f"{runs} measured kept [ettr.measured.mean] on average"
    if m.has("ettr.measured.expected"):
        text += "; the model expects [ettr.measured.expected]"
    return (f"{text}.",)


def _unit(m: Numbers) -> str:
    return m.value("ettr.unit", "GPUs").removesuffix("s")


def _run(m: Numbers) -> str:
    """1,024-GPU."""
    return f"[ettr.assumed.size_of_the_run:count]-{_unit(m)}"


def _article(m: Numbers) -> str:
    return words.article(m.words("ettr.assumed.size_of_the_run", "count"))


def _ends(by: str) -> tuple[str, str]:
    """The keys of the same at the lower and at the upper end of the failure rate."""
    return (f"{by}_low", f"{by}_high") if by.endswith("measured_rate") else ("ettr.low", "ettr.high")


@with_numbers
def planner(trace: Trace, m: Numbers) -> dict | None:
    """What the planner starts at; None where a trace of components gives nothing to reckon with.

    unit: GPUs or nodes; of: what fails, a node or a GPU; node_gpus: GPUs of a node (1 where sizes are nodes); largest:
    the largest run, in `unit`; withheld: why the trace gives no failure rate to plan with, or None. Without a rate it
    is None, and all answers are "–"; where it is that of a component, the page answers once it is open.
    fields: size (gpus), failures per 1,000 node-days (rate), minutes (interval, write, restart) and days (queue for
    each start, work); spares where `down` is known. said: the answers at these values, as texts of
    `ttf.display.phrases`.
    down: shares of the time with 0, 1, 2 ... of so many units down at once; None where no one knows.
    """
    row, by = rate_row(trace.table("node_failure_rate")), f"ettr.{m.value('ettr.by', None)}"
    planned = m.has(f"{by}.ettr")
    node_gpus = int(row["node_gpus"] or 1)
    largest = int(row["largest_run_nodes"] or 0) * node_gpus
    rate = m.value("ettr.assumed.failure_rate", None) if planned else _component_rate(trace, m)
    if by.endswith("measured_rate") and planned:
        rate = 1000 * DAY_S / (m["ettr.nodes"] * m["ettr.mttf_s"])
    assumed = {name: m[f"ettr.assumed.{key}"] for name, key in _FIELDS.items()}
    fields = {"gpus": int(m["ettr.assumed.size_of_the_run"]), "rate": None if rate is None else _short(rate)}
    fields |= {name: _short(seconds / (60 if name in _MINUTES else DAY_S)) for name, seconds in assumed.items()}
    down = _down_at_once(trace, m)
    if not (trace.has_jobs or rate is not None or down):
        return None
    fields |= {"spares": 0} if down else {}
    answers = {name: f"{by}.{key}" for name, key in _ANSWERS.items()}
    answers |= {"mttf": "ettr.mttf_s", "best": "ettr.optimal_interval_s"}
    why = f"{words.capital(m.value('ettr.withheld', 'the failure rate is not known'))}."
    return {
        "unit": m.value("ettr.unit", "GPUs"),
        "node_gpus": node_gpus,
        "largest": largest,
        "of": "GPU" if trace.about["unit"] == "GPU" else "node",
        "withheld": why if rate is None else None,
        "fields": fields,
        "said": {name: f"[{key}]" if planned and m.has(key) else "–" for name, key in answers.items()},
        "down": down,
    }


def _down_at_once(trace: Trace, m: Numbers) -> dict | None:
    """Of the units that a run may be on (`plan_capacity`): units, and shares of the time with 0, 1, 2 ... down."""
    if not m.has("capacity.nodes"):
        return None
    stratum = trace.table("spares_needed")["stratum"][0]
    rows = trace.table("units_down").filter(stratum=stratum, outages="all").filter(pl.col("time_s") > 0)
    shares = [0.0] * (rows["down"].max() + 1)
    for down, share in rows.select("down", "time_share").iter_rows():
        shares[down] = _short(share)
    return {"units": round(rows["units"][0]), "shares": shares}


_FIELDS = {
    "interval": "checkpoint_interval",
    "write": "checkpoint_write",
    "restart": "start-up",
    "queue": "queue",
    "work": "work_of_the_run",
}
_MINUTES = ("interval", "write", "restart")


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def tables(trace: Trace) -> dict[str, Shown]:
    assumed, ettr = trace.table("ettr_assumptions"), trace.table("ettr")
    values = dict(assumed.select("assumption", "amount").iter_rows())
    size, size_of = values["size of the run"], pl.coalesce("gpus", "nodes")
    if trace.has_jobs and not ettr.filter(size_of == size)["ettr_renewal"].count():
        # Withheld: the planner starts without it.
        assumed = assumed.filter(~pl.col("assumption").str.starts_with("failure rate"))
    found = {"ettr-assumptions": _assumptions(assumed)}
    known = ettr.with_columns(trace.table("ettr_outlook")["scheduled_share"])
    known = known.filter(pl.col("ettr_renewal").is_not_null(), rate="estimate")
    rows = known.filter(checkpoint_interval_s=values["checkpoint interval"])
    if rows.height > 1:
        with_error = texts(rows, ("ettr_simulated", "ettr_simulated_se"), _with_error)
        rows = rows.with_columns(ettr_simulated=with_error)
        columns = {"gpus" if ettr["gpus"].count() else "nodes": None, "mttf_s": None}
        columns |= {"scheduled_share": ("Of scheduled time", words.share), "ettr_renewal": ("ETTR", words.share)}
        columns |= {"ettr_simulated": ("Simulated", str), "optimal_interval_s": None}
        found["ettr"] = Shown(rows, columns, ETTR)
    gains = trace.table("mitigations").filter(pl.col("ettr_after").is_not_null() & (size_of >= size))
    if gains.height:
        sizes = gains.select(size_of.unique().sort().head(1 + LARGER_SIZES)).to_series()
        unit = "GPU" if gains["gpus"].count() else "node"
        gains = gains.filter(size_of.is_in(sizes.implode())).with_columns(
            of_size=pl.format(f"{{}} {unit}s", size_of.map_elements(words.count, return_dtype=pl.String))
        )
        columns = ["mitigation", "ettr_before", "ettr_after", f"{unit.lower()}_hours_saved_per_productive_week"]
        found["mitigations"] = Shown(gains, columns, MITIGATIONS, "of_size")
    return found


def _with_error(ratio: float, error: float | None) -> str:
    return words.share(ratio) + ("" if error is None else f" ± {words.number(100 * error, 1)}")


def _assumptions(assumed: pl.DataFrame) -> Shown:
    amounts = texts(assumed, ("amount", "unit"), lambda amount, unit: _WORDED[unit](amount))
    assumed = assumed.with_columns(amount=amounts, source=pl.col("source").replace(_BASES))
    columns = {"assumption": None, "amount": ("Value", str), "n": None, "source": None, "reason": "Note"}
    return Shown(assumed, columns, ETTR_ASSUMPTIONS, longest=LONGEST_REASON)
