"""The report as a PDF: the brief on its first page, then the open part of each section, without the folds.

Typst sets it from report/paper.typ, reproducibly: no date, only the fonts of Typst, no network.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from ttf.display import phrases
from ttf.display.brief_model import Fact
from ttf.display.charts.glyphs import SPELLED, has_missing_glyphs, spell_missing_glyphs
from ttf.display.charts.saving import static_picture
from ttf.display.charts.theme import LIGHT
from ttf.engine import words
from ttf.engine.errors import StudyError
from ttf.engine.extras import require_extra
from ttf.page.brief.mini_charts import draw_mini
from ttf.page.publication_record import Publication
from ttf.page.render.pictures import set_font
from ttf.page.report.templates import environment
from ttf.page.report.trace_page import TracePage

_TOKEN = re.compile(r"var\(--([\w-]+)\)")
_CLOSING = (
    "The web page of this report has the details of each section, the methods and all numbers; metrics.json lists "
    "every number with its unit, n and source table."
)


def write_pdf(page: TracePage, publication: Publication, templates: Path, work: Path) -> Path:
    """Write the PDF of a page into the folder `work`; return its path. Raises StudyError if Typst fails or warns."""
    require_extra("pdf")
    import typst

    (work / "paper.typ").write_text(_build_source(page, publication, templates, work), encoding="utf-8")
    try:
        pdf, warnings = typst.compile_with_warnings(
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
    (work / "paper.pdf").write_bytes(pdf)
    return work / "paper.pdf"


def _build_source(page: TracePage, publication: Publication, templates: Path, work: Path) -> str:
    jinja = environment(templates)
    used_texts: list[str] = []

    def record_and_spell(text: str) -> str:
        """Return the text with characters without a glyph spelled out, and note that it is used."""
        used_texts.append(text)
        return spell_missing_glyphs(text)

    # Every text passes through the filter t.
    jinja.filters |= {
        "t": lambda text: words.typst_string(record_and_spell(phrases.strip_markup(str(text)))),
        "strings": lambda texts: words.typst_strings([record_and_spell(text) for text in texts]),
        "draw": lambda chart: words.typst_string(set_font(_resolve_colours(record_and_spell(draw_mini(chart))))),
    }
    frame, brief = page.frame, page.brief
    quality = Fact("Data quality", brief.grade, (brief.grade_reasons or ("no reservations",))[0])
    authors = [author.name for author in publication.authors]
    origin = " · ".join(filter(None, ("; ".join(authors), f"Time to Failure {publication.version}")))
    text = jinja.get_template("paper.typ").render(
        title=frame.title,
        authors=authors,
        description=" ".join(brief.bottom_line),
        footer=" · ".join(filter(None, (frame.title, brief.period, f"Time to Failure {publication.version}")))
        + (" · synthetic data" if frame.synthetic else ""),
        origin=origin + (f" · data of {brief.period}" if brief.period else ""),
        synthetic=frame.synthetic,
        pseudonyms=frame.pseudonyms,
        brief=brief,
        facts=[*brief.facts, quality],
        sections=[
            {"theme": page.sections[theme], "head": head, "charts": list(_write_charts(page, head.charts, work))}
            for theme, head in page.heads.items()
        ],
        checked=[line for line in page.lines if line.checked],
        absent=[line for line in page.lines if not line.checked],
        closing=_CLOSING,
        **{name.replace("-", ""): LIGHT[name] for name in ("ink", "ink-2", "ink-3", "line", "sunken")},
        **{name.replace("-", "_"): LIGHT[name] for name in ("warn-ink", "warn-bg", "stop-ink", "stop-bg")},
    )
    return text + (f"\n#faint[#{words.typst_string(SPELLED)}]\n" if any(map(has_missing_glyphs, used_texts)) else "")


def _resolve_colours(svg: str) -> str:
    return _TOKEN.sub(lambda match: LIGHT[match[1]], svg)


def _write_charts(page: TracePage, names: Iterable[str], work: Path) -> Iterable[tuple[str, str]]:
    """Write the charts that are not empty into `work`; yield (file, alternative text) of each."""
    for name in filter(page.blocks.has_chart, names):
        svg = static_picture(page.trace.folder / "figures" / f"{name}.svg")
        (work / f"{name}.svg").write_text(set_font(svg), encoding="utf-8")
        yield f"{name}.svg", page.blocks.figures[name]["alt"]
