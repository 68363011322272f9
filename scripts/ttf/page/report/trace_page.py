"""The page of a trace as .qmd: its brief, eleven sections of which each is open in its head and folded in its details.

Templates of folds are Jinja with <% %> and << >>, because {{< >}} is Quarto's; what they leave is .qmd that Quarto and
Pandoc both render. All else is HTML by report/blocks.html, which no renderer reads.
"""

import importlib.util
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import jinja2
from markupsafe import Markup

from ttf.analyses import contracts_of, module_name
from ttf.analyses.catalogue import rooms
from ttf.analyses.sections import APPENDIX, RESULTS, Theme, number_sections
from ttf.display import phrases, statement_rules
from ttf.display.brief_model import WITHHELD
from ttf.display.report_tables import Shown
from ttf.display.report_trace import Trace
from ttf.display.section_head import Head, Line
from ttf.display.trace_numbers import handled
from ttf.engine import words
from ttf.engine.contract import Table
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.page.brief.stratum_tiles import strata_json
from ttf.page.render.packing import as_json, deflated, packed
from ttf.page.render.references import resolved
from ttf.page.report import all_numbers, quality_lines, quality_tables
from ttf.page.report.blocks import Blocks, counted, macros, raw
from ttf.page.report.citation import Citation
from ttf.page.report.scorecard_section import Scored

_OF_STAGES = {"quality": ["sections/data", "sections/quality"]}
_HANDLED = ("count", "number", "share", "duration", "plural", "part", "wait", "p_value")


@dataclass(frozen=True)
class Entry:
    """A line of the list of contents."""

    title: str
    href: str
    number: str = ""
    current: bool = False


@dataclass
class Frame:
    """What stands around a page: its title, its contents, its foot.

    others: the other pages of the study; numbers: whether the page holds numbers with keys.
    """

    title: str
    synthetic: bool
    version: str
    citation: Citation
    others: list[Entry] = field(default_factory=list)
    numbers: bool = True
    kind: str = "Time to Failure report"
    top: list[Mapping] = field(default_factory=list)
    groups: list[tuple[str, list[Entry]]] = field(default_factory=list)
    pseudonyms: bool = False

    def front(self, description: str) -> str:
        """The front matter of the .qmd."""
        html = dict.fromkeys(("toc", "number-sections", "anchor-sections", "code-copy", "embed-resources"), False)
        html |= dict.fromkeys(("theme", "highlight-style", "html-table-processing", "appendix-style"), "none")
        html |= {"minimal": True, "template": "page.html", "html-math-method": "mathml"}
        about = {
            "pagetitle": words.markdown(f"{self.title}: {self.kind}"),
            # It stands in an attribute, where a renderer would leave quotes as they are.
            "description": f"`{words.attribute(description)}`{{=html}}",
            "lang": "en",
            "engine": "markdown",
            "bibliography": "references.bib",
            "link-citations": True,
            "format": {"html": html},
        }
        return "---\n" + "\n".join(f"{key}: {json.dumps(value)}" for key, value in about.items()) + "\n---\n"

    def footer_of_print(self) -> str:
        """CSS that puts title, version and page number at the foot of each printed page."""
        text = f"{self.title}{' (synthetic)' if self.synthetic else ''} · Time to Failure {self.version}"
        content = "".join(sign if sign.isalnum() and sign.isascii() else f"\\{ord(sign):x} " for sign in text[:120])
        return (
            f'<style>@page{{margin:14mm 14mm 16mm;@bottom-left{{content:"{content}"}}'
            '@bottom-right{content:counter(page) " / " counter(pages)}}</style>'
        )


def environment(templates: Path, rooms: Iterable[Path] = ()) -> jinja2.Environment:
    """Jinja with the templates of folds and those of the rooms.

    An undefined name is an error: a number must not go missing in silence.
    """
    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader([templates, *rooms]),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # a heading needs the blank line before it, also after an include
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # the output is Markdown; texts go through the filters md and label
    )
    jinja.filters |= {name: handled(getattr(words, name)) for name in _HANDLED}
    jinja.filters |= {
        "md": words.markdown,
        "label": lambda text: f"<bdi>{words.label(text)}</bdi>",
        "until": words.until,
    }
    return jinja


class TracePage:
    """The page of a trace."""

    def __init__(
        self, jinja: jinja2.Environment, templates: Path, trace: Trace, frame: Frame, folders: tuple[str, ...] = ()
    ) -> None:
        self._jinja, self._macros, self._folders = jinja, macros(templates), folders
        self.trace, self.frame = trace, frame
        self.m, self.brief = trace.metrics, trace.brief
        self._pages = {name: page for name in trace.analyses if (page := _page(name))}
        self.blocks = Blocks(trace, templates, self._tables())
        self._context = {
            "trace": trace,
            "unit": trace.about["unit"],
            "life": trace.about["life"],
            "lives": words.many(trace.about["life"]),
            "is_repaired": phrases.is_repaired(trace.about),
            "m": self.m,
            "rules": statement_rules,
            "chart": self.blocks.chart,
            "table": self.blocks.table,
            "has_chart": self.blocks.has_chart,
            "has_table": self.blocks.has_table,
            "most_parts": quality_tables.MOST_PARTS,
        }
        for page in self._pages.values():
            if "context" in vars(page):
                self._context |= page.context(trace, self.m)
        self.heads, self.lines = self._opened()
        worded = self.m.size.worded
        numbered = number_sections(self.heads).items()
        self.sections = {theme: about._replace(title=worded(about.title)) for theme, about in numbered}
        self.appendix: list[Theme] = []
        self.blocks.open = {chart for head in self.heads.values() for chart in head.charts}

    def qmd(self, scored: Scored | None, significance: float, home: str) -> str:
        """The whole page. scored: the published findings about the trace; home: the folder of the study."""
        self._context |= {"significance": f"{significance:g}", "home": home, "versions": _versions()}
        self._context |= {"citation": self.frame.citation, "scored": scored is not None}
        if scored:
            self.blocks.tables |= {name: shown for name, shown in scored.tables.items() if shown.frame.height}
            self._context |= scored.context
        heads, lines = self.heads, self.lines
        sections = [self._section(theme, head) for theme, head in heads.items()]
        nothing = self._macros.nothing(
            [line for line in lines if line.checked], [line for line in lines if not line.checked]
        )
        appendix = self._appendix()
        self._list_contents(bool(lines))
        themes = {about.anchor: about for about in (*self.sections.values(), *self.appendix)}
        overview = self._macros.overview(self.frame, self.brief, themes)
        first = f"{self._macros.opening(self.frame)}{self.frame.footer_of_print()}{overview}"
        body = raw(first + str(self._macros.actions(self.brief, themes))) + "".join(sections)
        specs = {name: self.trace.spec(name) for name in self.blocks.charts}
        data = data_of_scripts(specs, self.frame.citation, self._strata())
        body += raw(nothing) + self._without_head() + appendix + raw(f"{self._macros.closing(self.frame)}{data}")
        front = self.frame.front(phrases.plain(" ".join(self.brief.bottom_line)))
        return words.unbroken(front + resolved(body, self.blocks.places))

    def _tables(self) -> dict[str, Shown]:
        """Name -> table, of those that have rows; of a room that words none of its own, as its contracts say."""
        tables = quality_tables.tables(self.trace)
        for name, page in self._pages.items():
            of_page = page.tables(self.trace) if "tables" in vars(page) else {}
            tables |= {table: shown._replace(unit=self._unit_of(name)) for table, shown in of_page.items()}
        declared = contracts_of(name for name in self.trace.analyses if name not in self._pages)
        for name, contract in declared.items():
            if not contract.path.endswith(".csv"):
                continue
            frame = self.trace.table(name)
            tables[name] = Shown(frame, [column for column in contract.columns if frame[column].count()], contract)
        return {name: shown for name, shown in tables.items() if shown.frame.height}

    def _opened(self) -> tuple[dict[str, Head], list[Line]]:
        """Theme -> what stands open of it, by the first of its rooms with something to say; and lines of the others."""
        heads, lines = {}, []
        declared = rooms(self._folders)
        for theme in RESULTS:
            leading = [name for name, page in self._pages.items() if declared[name].theme == theme]
            found = [head for name in leading for head in self._said(name, "head")]
            head = next((one for one in found if isinstance(one, Head)), None)
            if head:
                heads[theme] = head
            else:
                lines += found
        for name in self._pages:
            lines += [line for found in self._said(name, "lines") for line in found]
        return heads, lines + quality_lines.lines(self.trace, self.m)

    def _said(self, analysis: str, part: str) -> list:
        """What the page of an analysis says in a part, `head` or `lines`, in the unit of its sizes."""
        page = vars(self._pages[analysis])
        said_there = page[part](self.trace, self.m) if part in page else None
        return [phrases.in_unit(said_there, self._unit_of(analysis))] if said_there else []

    def _unit_of(self, analysis: str) -> SizeUnit:
        return self.m.size if rooms(self._folders)[analysis].in_size_unit else GPU

    def _section(self, theme: str, head: Head) -> str:
        about = self.sections[theme]
        figures = [Markup(figure) for name in head.charts if (figure := self.blocks.figure(name))]
        opened = str(self._macros.head(about, head, figures))
        opened += str(self._macros.planner(head.planner)) if head.planner else ""
        fold = self._fold(f"{about.anchor}-details", "Details", head.details, self._text(theme))
        return raw(opened) + fold + raw("</section>")

    def _without_head(self) -> str:
        """Folds of themes of which nothing stands open, where their rooms have tables or charts all the same."""
        texts = {theme: self._text(theme) for theme in RESULTS if theme not in self.heads}
        return "".join(
            self._fold(RESULTS[theme].anchor, self.m.size.worded(RESULTS[theme].title), "", text)
            for theme, text in texts.items()
            if any(counted(text))
        )

    def _text(self, theme: str) -> str:
        """What the fold of a theme says: the sections of the stages and of the rooms that belong there."""
        templates = list(_OF_STAGES.get(theme, []))
        for name, analysis in rooms(self._folders).items():
            for section in analysis.sections if name in self.trace.analyses else ():
                of, _, template = section.rpartition("/")
                if (of or analysis.theme) == theme:
                    templates.append(f"{name}/{template}")
        return "\n\n".join(map(self._template, templates))

    def _fold(self, anchor: str, title: str, what: str, text: str) -> str:
        if not text.strip():
            return ""
        return raw(self._macros.fold(anchor, title, what, *counted(text))) + text + raw("</details>")

    def _appendix(self) -> str:
        references = "\n\n### References {#references}\n\n::: {#refs}\n:::\n"
        numbers = self._macros.all_numbers(*all_numbers.rows(self.m, self._contracts()))
        texts = {
            "quality": self._reasons() + self._text("quality"),
            "replication": self._text("replication"),
            "methods": self._template("sections/methods") + references,
            "numbers": raw(numbers),
            "reproduce": "\n\n".join(map(self._template, self._of_reproduce())),
        }
        whats = {"quality": f"grade {self.brief.grade}: rows and checks", "numbers": "filter, copy, cite, download"}
        numbered = number_sections([name for name, text in texts.items() if text.strip()], APPENDIX)
        self.appendix = list(numbered.values())
        folds = "".join(
            self._fold(theme.anchor, f"{theme.number} {theme.title}", whats.get(name, ""), texts[name])
            for name, theme in numbered.items()
        )
        return raw('<section id="appendix"><h2 class="kicker">Appendix</h2>') + folds + raw("</section>")

    def _contracts(self) -> Iterable[Table]:
        """Of the tables, those of analyses in the unit of sizes as their files have them."""
        in_unit = {
            table.name
            for name in self.trace.analyses
            if self._unit_of(name) != GPU
            for table in contracts_of([name]).values()
        }
        return [
            table.in_unit(self.m.size) if name in in_unit else table for name, table in self.trace.contracts.items()
        ]

    def _of_reproduce(self) -> list[str]:
        names = ("scorecard", "availability", "reproducibility", "cite")
        return [f"sections/{name}" for name in names if name != "scorecard" or self._context["scored"]]

    def _template(self, name: str) -> str:
        """A section in Markdown. Of an analysis in the unit of sizes the template, in which no text is the trace's."""
        analysis = name.partition("/")[0]
        unit = self._unit_of(analysis) if analysis in self._pages else GPU
        if unit == GPU:
            return self._jinja.get_template(f"{name}.qmd").render(self._context)
        source, *_ = self._jinja.loader.get_source(self._jinja, f"{name}.qmd")
        return self._jinja.from_string(unit.worded(source)).render(self._context)

    def _strata(self) -> str | None:
        """The tiles of each stratum, of those tiles that the trace itself has an estimate for."""
        if "describe_strata" not in self.trace.analyses:
            return None
        tiles = [tile.name for tile in self.brief.tiles if tile.state != WITHHELD]
        return strata_json(self.trace.table("strata"), tiles, self.m, self.trace.about)

    def _reasons(self) -> str:
        """Why the data have their grade."""
        reasons = "".join(f"<li>{phrases.html(reason)}</li>" for reason in self.brief.grade_reasons)
        return raw(f"<p>Grade {self.brief.grade}:</p><ul>{reasons}</ul>") if reasons else ""

    def _list_contents(self, lines: bool) -> None:
        self.frame.top = [{"anchor": "overview", "title": "Overview"}]
        if self.brief.actions or self.brief.not_worth:
            self.frame.top.append({"anchor": "actions", "title": "What to do"})
        results = [Entry(about.title, f"#{about.anchor}", about.number) for about in self.sections.values()]
        results += [Entry("Checked, nothing found", "#nothing")] if lines else []
        named = [Entry(about.title, f"#{about.anchor}", about.number) for about in self.appendix]
        self.frame.groups = [("Results", results), ("Appendix", named)]
        self.frame.groups += [("Study", self.frame.others)] if self.frame.others else []


def data_of_scripts(specs: Mapping[str, Mapping], citation: Citation, strata: str | None = None) -> str:
    """What the scripts of a page work on; nothing of it runs. specs: its charts as Vega-Lite; strata: `strata_json`."""
    scripts = {"charts-packed": deflated(as_json(packed(specs)))} if specs else {}
    scripts["bibtex"] = citation.bibtex.replace("<", "")
    texts = "".join(f'<script type="text/plain" id="{name}">{text}</script>\n' for name, text in scripts.items())
    return texts + (f'<script type="application/json" id="strata">{strata}</script>\n' if strata else "")


def _versions() -> str:
    """The packages that the numbers and the charts come from; the manifest has them all."""
    names = ("Snakemake", "Polars", "NumPy", "SciPy", "Altair", "Great Tables")
    *most, last = (f"{name} {version(name.replace(' ', '-'))}" for name in names)
    return f"{', '.join(most)} and {last}"


def _page(analysis: str) -> ModuleType | None:
    """The module of an analysis with its part of the page, if it has one."""
    name = f"{module_name(analysis)}.page"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
