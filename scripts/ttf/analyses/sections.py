"""The sections of a trace's page in order: eleven questions, then the appendix. No other module lists them."""

from collections.abc import Collection, Mapping
from string import ascii_uppercase
from typing import NamedTuple


class Theme(NamedTuple):
    """number: that of the section on a page, a letter in the appendix; question: what a section of results answers."""

    title: str
    anchor: str
    question: str = ""
    number: str = ""


RESULTS = {
    "outcomes": Theme("Outcomes", "outcomes", "How do jobs end?"),
    "causes": Theme("Causes", "causes", "Why do attempts fail?"),
    "factors": Theme("Factors", "factors", "What is associated with failure, and with run time?"),
    "time_to_failure": Theme("Time to failure", "time-to-failure", "When do failures occur?"),
    "scaling": Theme("Scaling with job size", "scaling", "How does reliability fall with size?"),
    "lost": Theme("GPU time in failures", "lost", "What do failures cost?"),
    "large_runs": Theme("Large runs, planner", "large-runs", "What can a large run expect?"),
    "nodes": Theme("Nodes and periods", "nodes", "Does reliability vary by node or over time?"),
    "outages": Theme("Node outages", "outages", "When are nodes down, for how long, and how many spares are needed?"),
    "queue": Theme("Queue and utilisation", "queue", "How long do jobs wait, and how full is the cluster?"),
    "risk": Theme("Failure risk", "risk", "Can failures be predicted?"),
}
APPENDIX = {
    "quality": Theme("Data quality", "quality"),
    "replication": Theme("Published studies", "replication"),
    "methods": Theme("Methods", "methods"),
    "numbers": Theme("All numbers", "numbers"),
    "reproduce": Theme("Reproduce and cite", "reproduce"),
}
# The themes that an analysis may name.
THEMES = RESULTS | {
    "quality": APPENDIX["quality"],
    "replication": APPENDIX["replication"],
}


def number_sections(shown: Collection[str], themes: Mapping[str, Theme] = RESULTS) -> dict[str, Theme]:
    """Return the themes that a page shows, in order, numbered without gaps: 1, 2 for results, A, B for the appendix."""
    numbers = map(str, range(1, len(themes) + 1)) if themes is RESULTS else ascii_uppercase
    order = [theme for theme in themes if theme in shown]
    return {theme: themes[theme]._replace(number=number) for theme, number in zip(order, numbers, strict=False)}
