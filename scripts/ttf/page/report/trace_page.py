"""The page of a trace as .qmd: its brief, and eleven sections with an open head and folded details.

Templates of folds are Jinja with <% %> and << >>, because Quarto uses {{< >}}. Their output is .qmd that Quarto and
Pandoc both render. The rest is HTML by report/blocks.html, which renderers pass through.
"""

import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import jinja2
from markupsafe import Markup

from ttf.analyses import load_contracts, module_name
from ttf.analyses.catalogue import find_analysis_folders, load_analyses
from ttf.analyses.sections import APPENDIX, RESULTS, Theme, number_sections
from ttf.display import phrases, statement_rules
from ttf.display.brief_model import WITHHELD
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace
from ttf.display.section_head import Head, Line
from ttf.engine import words
from ttf.engine.checkout import name_workflow_file
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.page.brief.stratum_tiles import strata_json
from ttf.page.render.packing import deflate, pack_charts, to_json
from ttf.page.render.references import resolve_references
from ttf.page.report import all_numbers, quality_lines, quality_tables
from ttf.page.report.blocks import Blocks, count_blocks, raw_block
from ttf.page.report.citation import Citation
from ttf.page.report.published_studies import PublishedStudy, describe_comparison
from ttf.page.report.templates import macros

_STAGE_SECTIONS = {"quality": ["sections/data", "sections/quality"]}
_CITED = re.compile(r"^@\w+\{(\w+),", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A link in the list of contents."""

    title: str
    href: str
    number: str = ""
    current: bool = False


@dataclass
class Frame:
    """The frame of a page: title, contents, footer.

    page_links: the other pages of the study; numbers: whether the page holds numbers with keys.
    """

    title: str
    synthetic: bool
    version: str
    citation: Citation
    page_links: list[Entry] = field(default_factory=list)
    numbers: bool = True
    kind: str = "Time to Failure report"
    top: list[Mapping] = field(default_factory=list)
    groups: list[tuple[str, list[Entry]]] = field(default_factory=list)
    pseudonyms: bool = False

    def front(self, description: str) -> str:
        """Return the front matter of the .qmd."""
        off = ("toc", "number-sections", "anchor-sections", "code-copy", "embed-resources")
        unstyled = ("theme", "highlight-style", "html-table-processing", "appendix-style")
        html = {**dict.fromkeys(off, False), **dict.fromkeys(unstyled, "none")}
        html |= {"minimal": True, "template": "page.html", "html-math-method": "mathml"}
        fields = {
            "pagetitle": words.markdown(f"{self.title}: {self.kind}"),
            # A raw attribute value: renderers would not escape its quotes.
            "description": f"`{words.attribute(description)}`{{=html}}",
            "lang": "en",
            "engine": "markdown",
            "bibliography": "references.bib",
            "link-citations": True,
            "format": {"html": html},
        }
        return "---\n" + "\n".join(f"{key}: {json.dumps(value)}" for key, value in fields.items()) + "\n---\n"

    def print_footer(self) -> str:
        """Return CSS with title, version and page number for the foot of each printed page."""
        text = f"{self.title}{' (synthetic)' if self.synthetic else ''} · Time to Failure {self.version}"
        content = "".join(char if char.isalnum() and char.isascii() else f"\\{ord(char):x} " for char in text[:120])
        return (
            f'<style>@page{{margin:14mm 14mm 16mm;@bottom-left{{content:"{content}"}}'
            '@bottom-right{content:counter(page) " / " counter(pages)}}</style>'
        )


class TracePage:
    """The page of a trace."""

    def __init__(
        self, jinja: jinja2.Environment, templates: Path, trace: Trace, frame: Frame, folders: tuple[str, ...] = ()
    ) -> None:
        self._jinja, self._macros, self._folders = jinja, macros(templates), folders
        self.trace, self.frame = trace, frame
        self.m, self.brief = trace.metrics, trace.brief
        self._pages = {name: page for name in trace.analyses if (page := _page_module(name))}
        self.blocks = Blocks(trace, templates, self._tables())
        self._context = {
            "trace": trace,
            "unit": trace.info["unit"],
            "subject": trace.info["subject"],
            "durations": words.plural_noun(trace.info["subject"]),
            "is_repaired": phrases.is_repaired(trace.info),
            "m": self.m,
            "rules": statement_rules,
            "chart": self.blocks.chart,
            "table": self.blocks.table,
            "has_chart": self.blocks.has_chart,
            "has_table": self.blocks.has_table,
            "most_parts": quality_tables.MAX_PARTS,
            "cited": _CITED.findall((templates / "references.bib").read_text(encoding="utf-8")),
        }
        for page in self._pages.values():
            if "context" in vars(page):
                self._context |= page.context(trace, self.m)
        self.heads, self.lines = self._collect_heads()
        convert = self.m.size.worded
        numbered = number_sections(self.heads).items()
        self.sections = {theme: theme_info._replace(title=convert(theme_info.title)) for theme, theme_info in numbered}
        self.appendix: list[Theme] = []
        self.blocks.open_charts = {chart for head in self.heads.values() for chart in head.charts}

    def qmd(
        self, studies: Sequence[PublishedStudy], comparisons: Mapping[str, list[str]], significance: float, home: str
    ) -> str:
        """Return the whole page.

        studies: the published findings about the trace; comparisons: output of `compare_tiles`; home: the folder of the
        study.
        """
        self._context |= {"significance": f"{significance:g}", "home": home, "versions": _list_versions()}
        self._context |= {"citation": self.frame.citation, "studies": studies}
        self._context["origins"] = {study.key: describe_comparison(study, self.trace) for study in studies}
        self.blocks.tables |= {part.name: part.table for study in studies for part in study.tables}
        sections = [self._build_section(theme, head) for theme, head in self.heads.items()]
        no_findings = self._macros.nothing(
            [line for line in self.lines if line.checked], [line for line in self.lines if not line.checked]
        )
        appendix = self._build_appendix()
        self._set_contents()
        themes = {theme.anchor: theme for theme in (*self.sections.values(), *self.appendix)}
        overview = self._macros.overview(self.frame, self.brief, themes, comparisons)
        opening = f"{self._macros.opening(self.frame)}{self.frame.print_footer()}{overview}"
        body = raw_block(opening + str(self._macros.actions(self.brief, themes))) + "".join(sections)
        specs = {name: self.trace.spec(name) for name in self.blocks.charts}
        data = embed_script_data(specs, self.frame.citation, self._build_strata_json())
        closing = raw_block(f"{self._macros.closing(self.frame)}{data}")
        body += raw_block(no_findings) + self._build_folds_without_head() + appendix + closing
        front = self.frame.front(phrases.strip_markup(" ".join(self.brief.bottom_line)))
        return words.add_no_break_spaces(front + resolve_references(body, self.blocks.labels))

    def _tables(self) -> dict[str, PageTable]:
        """Return the tables with rows by name; an analysis without page.py gets default tables from its contracts."""
        tables = quality_tables.tables(self.trace)
        for name, page in self._pages.items():
            page_tables = page.tables(self.trace) if "tables" in vars(page) else {}
            tables |= {table: shown._replace(unit=self._size_unit(name)) for table, shown in page_tables.items()}
        contracts = load_contracts(name for name in self.trace.analyses if name not in self._pages)
        for name, contract in contracts.items():
            if not contract.path.endswith(".csv"):
                continue
            frame = self.trace.table(name)
            tables[name] = PageTable(frame, [column for column in contract.columns if frame[column].count()], contract)
        return {name: table for name, table in tables.items() if table.frame.height}

    def _collect_heads(self) -> tuple[dict[str, Head], list[Line]]:
        """Return the head of each theme, from its first analysis that has one, and the lines of all analyses."""
        heads, lines = {}, []
        declarations = load_analyses(self._folders)
        for theme in RESULTS:
            leading_analyses = [name for name, page in self._pages.items() if declarations[name].theme == theme]
            parts = [part for name in leading_analyses for part in self._call_page_function(name, "head")]
            head = next((part for part in parts if isinstance(part, Head)), None)
            if head:
                heads[theme] = head
            else:
                lines += parts
        for name in self._pages:
            lines += self._call_page_function(name, "lines")
        return heads, lines + phrases.fill_slots(quality_lines.lines(self.trace, self.m), self.m)

    def _call_page_function(self, analysis: str, part: str) -> list:
        """Return, as a list, what a function of an analysis' page.py gives, in its size unit; empty if nothing."""
        page = vars(self._pages[analysis])
        content = (page[part](self.trace, self.m) if part in page else None) or []
        filled = phrases.fill_slots(content if isinstance(content, list) else [content], self.m)
        parts = phrases.convert_units(filled, self._size_unit(analysis))
        return [replace(item, file=self._source_file(analysis, "page.py")) for item in parts]

    def _source_file(self, analysis: str, name: str) -> str:
        """Return the path of a file from the checkout on; of a user's analysis only its folder and name."""
        if analysis == "sections":
            return f"report/sections/{name}"
        folder = find_analysis_folders(self._folders)[analysis]
        return name_workflow_file(folder / name) or f"{folder.name}/{name}"

    def _size_unit(self, analysis: str) -> SizeUnit:
        return self.m.size if load_analyses(self._folders)[analysis].in_size_unit else GPU

    def _build_section(self, theme: str, head: Head) -> str:
        theme_info = self.sections[theme]
        figures = [Markup(figure) for name in head.charts if (figure := self.blocks.figure(name))]
        opening = str(self._macros.head(theme_info, head, figures))
        opening += str(self._macros.planner(head.planner)) if head.planner else ""
        fold = self._build_fold(f"{theme_info.anchor}-details", "Details", head.details, self._fold_text(theme))
        return raw_block(opening) + fold + raw_block("</section>")

    def _build_folds_without_head(self) -> str:
        texts = {theme: self._fold_text(theme) for theme in RESULTS if theme not in self.heads}
        return "".join(
            self._build_fold(RESULTS[theme].anchor, self.m.size.worded(RESULTS[theme].title), "", text)
            for theme, text in texts.items()
            if any(count_blocks(text))
        )

    def _fold_text(self, theme: str) -> str:
        """Return the text of a theme's fold: the sections of its stages and analyses."""
        templates = list(_STAGE_SECTIONS.get(theme, []))
        for name, analysis in load_analyses(self._folders).items():
            for section in analysis.sections if name in self.trace.analyses else ():
                section_theme, _, template = section.rpartition("/")
                if (section_theme or analysis.theme) == theme:
                    templates.append(f"{name}/{template}")
        return "\n\n".join(map(self._render_section, templates))

    def _build_fold(self, anchor: str, title: str, summary: str, text: str) -> str:
        if not text.strip():
            return ""
        return (
            raw_block(self._macros.fold(anchor, title, summary, *count_blocks(text))) + text + raw_block("</details>")
        )

    def _build_appendix(self) -> str:
        references = "\n\n### References {#references}\n\n::: {#refs}\n:::\n"
        reproduce = ("availability", "reproducibility", "cite")
        numbers = self._macros.all_numbers(*all_numbers.rows(self.m))
        texts = {
            "quality": self._build_grade_reasons() + self._fold_text("quality"),
            "replication": self._render_section("sections/published") + self._fold_text("replication"),
            "methods": self._render_section("sections/methods") + references,
            "numbers": raw_block(numbers),
            "reproduce": "\n\n".join(self._render_section(f"sections/{name}") for name in reproduce),
        }
        summaries = {"quality": f"grade {self.brief.grade}: rows and checks", "numbers": "filter, copy, cite, download"}
        numbered = number_sections([name for name, text in texts.items() if text.strip()], APPENDIX)
        self.appendix = list(numbered.values())
        folds = "".join(
            self._build_fold(theme.anchor, f"{theme.number} {theme.title}", summaries.get(name, ""), texts[name])
            for name, theme in numbered.items()
        )
        return raw_block('<section id="appendix"><h2 class="kicker">Appendix</h2>') + folds + raw_block("</section>")

    def _render_section(self, name: str) -> str:
        """Render a section to Markdown, after a mark that names its file.

        The size unit is converted in the template, before text of the trace enters.
        """
        text = phrases.to_markdown(self._render_template(name), self.m)
        analysis, _, template = name.partition("/")
        mark = self._macros.file_mark(self._source_file(analysis, f"{template}.qmd"))
        return f"{raw_block(mark)}{text}" if text.strip() else ""

    def _render_template(self, name: str) -> str:
        analysis = name.partition("/")[0]
        unit = self._size_unit(analysis) if analysis in self._pages else GPU
        loader = self._jinja.loader
        if unit == GPU or loader is None:
            return self._jinja.get_template(f"{name}.qmd").render(self._context)
        source, *_ = loader.get_source(self._jinja, f"{name}.qmd")
        return self._jinja.from_string(unit.worded(source)).render(self._context)

    def _build_strata_json(self) -> str | None:
        if "describe_strata" not in self.trace.analyses:
            return None
        tiles = [tile.name for tile in self.brief.tiles if tile.state != WITHHELD]
        return strata_json(self.trace.table("strata"), tiles, self.m, self.trace.info)

    def _build_grade_reasons(self) -> str:
        reasons = "".join(f"<li>{phrases.to_html(reason)}</li>" for reason in self.brief.grade_reasons)
        opening = f'<p data-file="scripts/ttf/page/brief/grade.py">Grade {self.brief.grade}:</p>'
        return raw_block(f"{opening}<ul>{reasons}</ul>") if reasons else ""

    def _set_contents(self) -> None:
        self.frame.top = [{"anchor": "overview", "title": "Overview"}]
        if self.brief.actions or self.brief.more_actions or self.brief.not_worth:
            self.frame.top.append({"anchor": "actions", "title": "What to do"})
        results = [Entry(theme.title, f"#{theme.anchor}", theme.number) for theme in self.sections.values()]
        results += [Entry("Checked, nothing found", "#nothing")] if self.lines else []
        appendix = [Entry(theme.title, f"#{theme.anchor}", theme.number) for theme in self.appendix]
        self.frame.groups = [("Results", results), ("Appendix", appendix)]
        self.frame.groups += [("Study", self.frame.page_links)] if self.frame.page_links else []


def embed_script_data(specs: Mapping[str, Mapping], citation: Citation, strata: str | None = None) -> str:
    """Return the data for the page's scripts, inert. specs: charts as Vega-Lite; strata: output of `strata_json`."""
    scripts = {"charts-packed": deflate(to_json(pack_charts(specs)))} if specs else {}
    scripts["bibtex"] = citation.bibtex.replace("<", "")
    texts = "".join(f'<script type="text/plain" id="{name}">{text}</script>\n' for name, text in scripts.items())
    return texts + (f'<script type="application/json" id="strata">{strata}</script>\n' if strata else "")


def _list_versions() -> str:
    names = ("Snakemake", "Polars", "NumPy", "SciPy", "Altair", "Great Tables")
    *packages, last = (f"{name} {version(name.replace(' ', '-'))}" for name in names)
    return f"{', '.join(packages)} and {last}"


def _page_module(analysis: str) -> ModuleType | None:
    name = f"{module_name(analysis)}.page"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
