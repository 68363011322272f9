"""Names of nodes to drain, and the Slurm command that drains them: text to copy, which nothing runs."""

import shlex
from collections.abc import Sequence

from ttf.display.node_ranges import hostlist, is_safe
from ttf.display.phrases import quote_trace_text
from ttf.engine.words import count, join_list

# Formats of clusters under Slurm; a table of jobs, or of outages, may be of one.
SLURM_FORMATS = ("sacct", "slurm_events", "table", "outages")
MOST_NAMED, MOST_IN_COMMAND = 3, 20


def name_nodes(nodes: Sequence[str]) -> str:
    """Return "n201, n041 and 3 more"."""
    names = [quote_trace_text(node, 24) for node in nodes[:MOST_NAMED]]
    hidden = len(nodes) - len(names)
    return join_list([*names, *([f"{count(hidden)} more"] if hidden else [])])


def drain_command(nodes: Sequence[str], reason: str) -> str:
    """Return `scontrol update` for the first safe names, or "" if there is none."""
    names = [*filter(is_safe, nodes)][:MOST_IN_COMMAND]
    if not names:
        return ""
    # Brackets of a hostlist are a pattern of the shell.
    return f"scontrol update NodeName={shlex.quote(hostlist(names))} State=DRAIN Reason={shlex.quote(reason)}"


def command_note(nodes: Sequence[str]) -> str:
    """Return a sentence on the nodes that the command omits, or ""."""
    n_safe = sum(map(is_safe, nodes))
    notes = []
    if n_unsafe := len(nodes) - n_safe:
        notes.append(f"{count(n_unsafe)} with a name that is not safe in a command")
    if n_safe > MOST_IN_COMMAND:
        notes.append(f"{count(n_safe - MOST_IN_COMMAND)} more in drains/exclude.txt")
    return f" The command omits {join_list(notes)}." if notes else ""
