"""The order of a trace's chapter: themes, and the sections (templates in report/sections) that each has."""

from dataclasses import dataclass

from ttf.report.trace import Trace

# Each theme: its title, its anchor behind that of the trace, and its sections with what each of them needs: the
# analysis of that name, "jobs" a trace of jobs, "" nothing.
_THEMES = (
    ("Data quality", "the-data", {"data": "", "quality": ""}),
    ("Outcomes", "how-they-end", {"outcomes": "jobs", "states": "states", "outcomes_window": "queueing"}),
    ("Time to success and failure", "to-the-end", {"run_times": "jobs", "run_time_to_failure": "queueing"}),
    (
        "Survival and mean time to failure",
        "lasting",
        {"survival": "", "lifetimes": "lifetimes", "hazards": "hazards", "sizes": "sizes"},
    ),
    ("Effective training time", "planning", {"ettr": "ettr"}),
    (
        "Queueing and utilisation",
        "use",
        {"workload": "jobs", "queueing": "queueing", "occupancy": "occupancy", "utilisation": "utilisation"},
    ),
    (
        "What goes with failure",
        "with-failure",
        {
            "correlations": "jobs",
            "study1": "study1",
            "taxonomy": "taxonomy",
            "lost_work": "lost_work",
            "lemons": "lemons",
            "epochs": "epochs",
        },
    ),
)


@dataclass(frozen=True)
class Theme:
    """A theme with the sections that apply to one trace."""

    title: str
    anchor: str
    sections: list[str]


def themes_of(trace: Trace) -> list[Theme]:
    """The themes of a trace that have a section, in the order of the page."""
    has = {"", *trace.analyses, *(["jobs"] if trace.has_jobs else [])}
    themes = [
        Theme(title, anchor, [section for section, needs in sections.items() if needs in has])
        for title, anchor, sections in _THEMES
    ]
    return [theme for theme in themes if theme.sections]
