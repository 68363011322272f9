"""The report on paper: the brief on its first page, then the open part of each section; what is folded is left out.

Typst sets it, from report/paper.typ; the same bytes every time: no date, no fonts but those Typst carries, no network.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from ttf.display import phrases
from ttf.display.brief_model import Fact
from ttf.display.charts.glyphs import SPELLED, lacks, spelled
from ttf.display.charts.saving import still
from ttf.display.charts.theme import LIGHT
from ttf.engine import words
from ttf.engine.errors import StudyError
from ttf.page.brief.mini_charts import mini
from ttf.page.publication_record import Publication
from ttf.page.report.trace_page import TracePage, environment

_TOKEN = re.compile(r"var\(--([\w-]+)\)")
_FONT_FAMILY = re.compile(r'font-family="[^"]*"')
_FONT_SIZE = re.compile(r'font-size="([\d.]+)px"')
# The font of the PDF is that much narrower than the one the charts are drawn for, and small where that is not.
_FONT, _LARGER = "Libertinus Serif", 1.08
_CLOSING = (
    "The details of each section, the methods and all numbers stand in the page of this report; every number is in "
    "metrics.json with its unit, n and source table."
)


def paper(page: TracePage, about: Publication, templates: Path, work: Path) -> Path:
    """The PDF of a page, made in the folder `work`. Raises StudyError where Typst fails or warns of anything."""
    import typst

    text = _source(page, about, templates, work)
    (work / "paper.typ").write_text(text, encoding="utf-8")
    try:
        made, warnings = typst.compile_with_warnings(
            work / "paper.typ",
            root=work,
            ignore_system_fonts=True,
            timestamp=0,
            # No packages, so no network.
            package_path=work / "none",
            package_cache_path=work / "none",
        )
    except typst.TypstError as error:
        raise StudyError(f"Typst could not set the report:\n{error}") from None
    if warnings:
        raise StudyError("Typst warns of the report:\n" + "\n".join(str(warning) for warning in warnings))
    (work / "paper.pdf").write_bytes(made)
    return work / "paper.pdf"


def _source(page: TracePage, about: Publication, templates: Path, work: Path) -> str:
    jinja = environment(templates)
    told: list[str] = []

    def in_font(text: str) -> str:
        told.append(text)
        return spelled(text)

    # Every text goes through the filter t.
    jinja.filters |= {
        "t": lambda text: words.typst_string(in_font(phrases.plain(str(text)))),
        "strings": lambda texts: words.typst_strings([in_font(text) for text in texts]),
        "drawn": lambda about: words.typst_string(_in_font(_TOKEN.sub(lambda at: LIGHT[at[1]], in_font(mini(about))))),
    }
    frame, brief = page.frame, page.brief
    quality = Fact("Data quality", brief.grade, (brief.grade_reasons or ("no reservations",))[0])
    made = f"{'; '.join(creator.name for creator in about.creators)} · version {about.version}"
    text = jinja.get_template("paper.typ").render(
        title=frame.title,
        authors=[creator.name for creator in about.creators],
        about=" ".join(brief.bottom_line),
        foot=" · ".join(filter(None, (frame.title, brief.period, f"Time to Failure {about.version}")))
        + (" · synthetic data" if frame.synthetic else ""),
        made=made + (f" · data of {brief.period}" if brief.period else ""),
        synthetic=frame.synthetic,
        pseudonyms=frame.pseudonyms,
        brief=brief,
        facts=[*brief.facts, quality],
        sections=[
            {"theme": page.sections[theme], "head": head, "charts": list(_charts(page, head.charts, work))}
            for theme, head in page.heads.items()
        ],
        checked=[line for line in page.lines if line.checked],
        absent=[line for line in page.lines if not line.checked],
        closing=_CLOSING,
        **{name.replace("-", ""): LIGHT[name] for name in ("ink", "ink-2", "ink-3", "line", "sunken")},
        **{name.replace("-", "_"): LIGHT[name] for name in ("warn-ink", "warn-bg", "stop-ink", "stop-bg")},
    )
    return text + (f"\n#faint[#{words.typst_string(SPELLED)}]\n" if any(map(lacks, told)) else "")


def _charts(page: TracePage, names: Iterable[str], work: Path) -> Iterable[tuple[str, str]]:
    """File, below `work`, and text alternative of each chart that there is."""
    for name in filter(page.blocks.has_chart, names):
        svg = still(page.trace.folder / "figures" / f"{name}.svg")
        (work / f"{name}.svg").write_text(_in_font(svg), encoding="utf-8")
        yield f"{name}.svg", page.blocks.figures[name]["alt"]


def _in_font(svg: str) -> str:
    """A drawing with its texts in the font of the PDF: whichever fonts a machine has, the bytes are the same."""
    svg = _FONT_FAMILY.sub(f'font-family="{_FONT}"', svg)
    return _FONT_SIZE.sub(lambda at: f'font-size="{float(at[1]) * _LARGER:.4g}px"', svg)
