"""The sections of a trace's page, in their order: eleven questions, then the appendix. Nothing else lists them."""

from collections.abc import Collection
from typing import NamedTuple


class Theme(NamedTuple):
    """number: 1 to 11, in the appendix a letter, without a gap where a page leaves some out; question: its question."""

    number: str
    title: str
    anchor: str
    question: str = ""


THEMES = {
    "outcomes": Theme("1", "Outcomes", "outcomes", "How do jobs end?"),
    "causes": Theme("2", "Causes", "causes", "Why do attempts fail?"),
    "factors": Theme("3", "Factors", "factors", "What is associated with failure, and with run time?"),
    "time_to_failure": Theme("4", "Time to failure", "time-to-failure", "When do jobs fail?"),
    "scaling": Theme("5", "Scaling with job size", "scaling", "How does reliability fall with size?"),
    "lost": Theme("6", "Lost GPU time", "lost", "What do failures cost?"),
    "large_runs": Theme("7", "Large runs, planner", "large-runs", "What can a large run expect?"),
    "nodes": Theme("8", "Nodes and periods", "nodes", "Is it always, and everywhere, the same?"),
    "outages": Theme("9", "Node outages", "outages", "When are nodes down, for how long, and what does it take?"),
    "queue": Theme("10", "Queue and utilisation", "queue", "How long do jobs wait, how full is the cluster?"),
    "risk": Theme("11", "Failure risk", "risk", "Can failure be told in advance?"),
    "quality": Theme("A", "Data quality", "quality"),
    "replication": Theme("B", "Published analyses, repeated", "replication"),
    "comparison": Theme("", "Comparison of the traces", "comparison"),
    "claims": Theme("", "Published findings", "scorecard"),
}


def number_sections(shown: Collection[str]) -> dict[str, Theme]:
    """Number the sections that a page shows from 1 on, without a gap where others are left out."""
    order = [theme for theme in THEMES if theme in shown]
    return {theme: THEMES[theme]._replace(number=str(number)) for number, theme in enumerate(order, start=1)}
