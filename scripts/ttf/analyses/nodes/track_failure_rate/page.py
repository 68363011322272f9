"""Page section on the failure rate over time, with the findings on single nodes."""

from collections.abc import Iterator

from ttf.display.excess_nodes import describe_nodes, node_keys
from ttf.display.report_trace import Trace
from ttf.display.section_head import Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

_RATE = {"proxy": "failure rate (any cause)", "component": "failure rate"}
WINDOW = "sizes.over_time"


def head(trace: Trace, m: Numbers) -> Head | Line | None:
    rate_name = _RATE.get(m.value("sizes.basis", ""), "infrastructure failure rate")
    title = f"{words.capitalise(rate_name)} over time"
    if f"{WINDOW}.windows" not in m:
        reason = m.value(f"{WINDOW}.reason", "no node was at work")
        return Line(title, reason, "tables/failure_rate_over_time.csv", checked=False)
    if not m[f"{WINDOW}.failures_in_windows"]:
        return Line(title, f"no failure in [{WINDOW}.windows window]", "tables/failure_rate_over_time.csv")
    keys_of_nodes = node_keys(trace, m)
    # Without a change, the extremes carry no information.
    extremes = _iterate_extreme_keys(m) if _has_change(m) or not keys_of_nodes else ()
    return Head(
        claim="; ".join(filter(None, (_format_claim(m, rate_name), describe_nodes(m)))),
        # Without a change, the chart is in the fold.
        charts=("failure_rate_over_time",) if _has_change(m) else (),
        keys=(*extremes, *keys_of_nodes),
        text=tuple(_iterate_sentences(m)),
        details="rate over time, nodes, test power",
    )


def _rate_field(extreme: str) -> str:
    return f"[{WINDOW}.{extreme}.failures_per_1000_node_days]"


def _has_change(m: Numbers) -> bool:
    """Tell whether the intervals of the lowest and the highest window do not overlap, or cannot be compared."""
    low, high = _nearest_bounds(m)
    return low is None or high is None or low < high


def _format_claim(m: Numbers, rate_name: str) -> str:
    if m[f"{WINDOW}.windows"] == 1:
        return f"The {rate_name} was {_rate_field('highest')} per 1,000 node-days"
    low, high = _nearest_bounds(m)
    if not _has_change(m):
        return f"The {rate_name} shows no significant change over [{WINDOW}.windows] windows"
    verb = "ranged from {} to" if low is None or high is None else "varied between {} and"
    return f"The {rate_name} {verb.format(_rate_field('lowest'))} {_rate_field('highest')} per 1,000 node-days"


def _nearest_bounds(m: Numbers) -> tuple[float | None, float | None]:
    """Return the upper bound of the lowest window and the lower bound of the highest.

    The exact bounds are used only if the trace names no clusters.
    """
    bounds = [f"{WINDOW}.{extreme}.{limit}" for extreme, limit in _NEAREST_BOUNDS]
    low, high = (m.value(f"{bound}_clustered") for bound in bounds)
    if low is None and high is None and not any(f"{WINDOW}.{name}.cluster_by" in m for name, _ in _NEAREST_BOUNDS):
        low, high = (m.value(bound) for bound in bounds)
    return low, high


def _iterate_extreme_keys(m: Numbers) -> Iterator[Key]:
    for extreme in ("highest", "lowest")[: m[f"{WINDOW}.windows"]]:
        label = f"{words.capitalise(extreme)} rate, {m[f'{WINDOW}.{extreme}.window']}"
        yield Key(label, _rate_field(extreme), f"[{WINDOW}.{extreme}.failures_per_1000_node_days:interval90]")


def _iterate_sentences(m: Numbers) -> Iterator[str]:
    windows = m[f"{WINDOW}.windows"]
    if f"{WINDOW}.days_before" in m:
        days, runs = f"[{WINDOW}.days_before]", f"[{WINDOW}.runs_before]"
        yield f"The first {days} days are excluded: they contain only {runs} of the recorded starts."
    if windows > 1:
        low, high = _nearest_bounds(m)
        extremes = f"the extremes of [{WINDOW}.windows window]"
        if low is None or high is None:
            yield f"No test of the change: too few clusters in {extremes}."
        elif low < high:
            yield f"These are {extremes}: part of the change may be random variation."
    if m.value("lemons.unattributed") and m.value("lemons.attributed_share", 1) < 0.5:
        yield (
            "[lemons.unattributed] of [lemons.window_failures] failures could not be attributed to a "
            "node, so the test of nodes has little power."
        )


_NEAREST_BOUNDS = (("lowest", "ci_high"), ("highest", "ci_low"))


def lines(trace: Trace, m: Numbers) -> list[Line]:
    if "lemons.nodes" in m:
        return []
    reason = "no node is named" if trace.has_jobs else f"a {trace.info['unit']} has no node to compare"
    return [Line("Nodes with excess failures", reason, checked=False)]
