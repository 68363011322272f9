"""The themes of a trace's chapter, in the order of the page; Snakemake's own report has the same."""

from typing import NamedTuple


class Theme(NamedTuple):
    title: str
    anchor: str


THEMES = {
    "data": Theme("Data quality", "the-data"),
    "outcomes": Theme("Outcomes", "how-they-end"),
    "run_times": Theme("Time to success and failure", "to-the-end"),
    "survival": Theme("Survival and mean time to failure", "lasting"),
    "training": Theme("Effective training time", "planning"),
    "use": Theme("Queueing and utilisation", "use"),
    "failure": Theme("What goes with failure", "with-failure"),
    "comparison": Theme("Comparison of the traces", "comparison"),
    "claims": Theme("Published findings", "scorecard"),
}
