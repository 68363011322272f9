"""What stands open of the rate over time, and beside it what is known of single nodes."""

from ttf.analyses.nodes.find_lemon_nodes.page import nodes_in_words, of_nodes
from ttf.display.phrases import with_numbers
from ttf.display.report_trace import Trace
from ttf.display.section_head import Head, Key, Line
from ttf.display.statement_rules import NO_NODES, WITHOUT_ENDS, ends_mostly_unknown, has_no_nodes
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

_RATE = {"proxy": "failure rate (any cause)", "component": "failure rate"}
WINDOW = "sizes.over_time"


@with_numbers
def head(trace: Trace, m: Numbers) -> Head | Line | None:
    what = _RATE.get(m.value("sizes.basis", ""), "infrastructure failure rate")
    if has_no_nodes(m) or not m.has(f"{WINDOW}.windows"):
        why = NO_NODES if has_no_nodes(m) else m.value(f"{WINDOW}.reason", "no node was at work")
        return Line(f"{words.capital(what)} over time", why, "tables/failure_rate_over_time.csv", checked=False)
    if ends_mostly_unknown(m):
        return Line(f"{words.capital(what)} over time", WITHOUT_ENDS, "tables/failures_without_end.csv", checked=False)
    if not m[f"{WINDOW}.failures_in_windows"]:
        return Line(
            f"{words.capital(what)} over time",
            f"no failure in [{WINDOW}.windows window]",
            "tables/failure_rate_over_time.csv",
        )
    named, nodes = nodes_in_words(m), of_nodes(trace, m)
    # Where nothing changed, the extremes say nothing.
    extremes = _keys(m) if _changed(m) or not nodes else ()
    return Head(
        claim=f"{_claim(m, what)}{f'; {named}' if named else ''}",
        # A picture of what did not change can wait in the fold.
        charts=("failure_rate_over_time",) if _changed(m) else (),
        keys=(*extremes, *nodes),
        text=tuple(_texts(m)),
        details="rate over time, nodes, test power",
    )


def _rate(m: Numbers, end: str) -> str:
    return f"[{WINDOW}.{end}.failures_per_1000_node_days]"


def _changed(m: Numbers) -> bool:
    """Whether the intervals of the lowest and the highest window do not meet, or cannot be compared."""
    low, high = _closest(m)
    return low is None or high is None or low < high


def _claim(m: Numbers, what: str) -> str:
    if m[f"{WINDOW}.windows"] == 1:
        return f"The {what} was {_rate(m, 'highest')} per 1,000 node-days"
    low, high = _closest(m)
    if not _changed(m):
        return f"The {what} shows no significant change over [{WINDOW}.windows] windows"
    verb = "ranged from {} to" if low is None or high is None else "varied between {} and"
    return f"The {what} {verb.format(_rate(m, 'lowest'))} {_rate(m, 'highest')} per 1,000 node-days"


def _closest(m: Numbers) -> tuple[float | None, float | None]:
    """The upper end of the lowest window's interval and the lower end of the highest one's.

    The exact ends serve only where the trace names nothing that fails alike.
    """
    low, high = (m.value(f"{WINDOW}.{end}.{limit}_clustered", None) for end, limit in _ENDS)
    if low is None and high is None and not any(m.has(f"{WINDOW}.{end}.cluster_by") for end, _ in _ENDS):
        low, high = (m.value(f"{WINDOW}.{end}.{limit}", None) for end, limit in _ENDS)
    return low, high


def _keys(m: Numbers):
    for end in ("highest", "lowest")[: m[f"{WINDOW}.windows"]]:
        interval = m.interval(f"{WINDOW}.{end}.ci_{{}}", confidence="90")
        yield Key(f"{words.capital(end)} rate, {m[f'{WINDOW}.{end}.window']}", _rate(m, end), interval)


def _texts(m: Numbers):
    windows = m[f"{WINDOW}.windows"]
    if m.has(f"{WINDOW}.days_before"):
        days, runs = f"[{WINDOW}.days_before]", f"[{WINDOW}.runs_before]"
        yield f"The first {days} days are left out: only {runs} of the starts recorded lie there."
    if windows > 1:
        low, high = _closest(m)
        extremes = f"the extremes of [{WINDOW}.windows window]"
        if low is None or high is None:
            yield f"No test of the change: too few clusters in {extremes}."
        elif low < high:
            yield f"These are {extremes}: part of the change may be chance."
    if m.value("lemons.unattributed", 0) and m.value("lemons.attributed_share", 1) < 0.5:
        yield (
            "[lemons.unattributed] of [lemons.window_failures] failures could not be attributed to a "
            "node, so the test of nodes has little power."
        )


_ENDS = (("lowest", "ci_high"), ("highest", "ci_low"))


@with_numbers
def lines(trace: Trace, m: Numbers) -> list[Line]:
    if m.has("lemons.nodes"):
        return []
    why = "no node is named" if trace.has_jobs else f"a {trace.about['unit']} has no node to compare"
    return [Line("Nodes with excess failures", why, checked=False)]
