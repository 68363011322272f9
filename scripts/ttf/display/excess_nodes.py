"""Words on nodes with excess failures."""

import polars as pl

from ttf.display import statement_rules
from ttf.display.phrases import quote_trace_text
from ttf.display.report_trace import Trace
from ttf.display.section_head import Key
from ttf.display.trace_numbers import Numbers

# Maximum number of nodes named in the head.
MOST_NAMED = 3


def describe_nodes(m: Numbers) -> str:
    """Return the end of a finding: the number of nodes with excess failures; nothing if none could be tested."""
    if not m.value("lemons.tested"):
        return ""
    if statement_rules.r11_no_power(m):
        if statement_rules.is_attribution_rare(m):
            return "too few failures name a node"
        if "lemons.first.ordinary_cv" in m:
            return "no node can be distinguished from others that differ"
        return "too few failures to compare nodes"
    if not m["lemons.lemons"]:
        return "no node has excess failures"
    return "[lemons.lemons node has|nodes have] excess failures"


def node_keys(trace: Trace, m: Numbers) -> list[Key]:
    """Return the number and names of nodes with excess failures, and the power of the test."""
    if not m.value("lemons.tested"):
        return []
    value, note = "[lemons.lemons] of [lemons.tested]", _format_nodes_note(trace, m)
    if statement_rules.r11_no_power(m):
        value, note = "cannot tell", statement_rules.cannot_tell(m).removeprefix("cannot tell: ")
    keys = [Key("Nodes with excess failures", value, note)]
    if "lemons.detectable_ratio" in m and not m["lemons.lemons"]:
        reference = "the failures expected" if m["lemons.basis"] == "proxy" else "the rate of its fleet"
        keys.append(Key("Detectable with 80% power", "[lemons.detectable_ratio] times", reference))
    return keys


def _format_nodes_note(trace: Trace, m: Numbers) -> str:
    if not m["lemons.lemons"]:
        return "of [lemons.counted failure]"
    nodes = trace.table("lemon_nodes").filter(pl.col("lemon"))["node"].head(MOST_NAMED)
    names = ", ".join(quote_trace_text(name, 20) for name in nodes) + "…" * (m["lemons.lemons"] > MOST_NAMED)
    return f"{names}; [lemons.share_of_failures] of failures"
