"""Building blocks of pages: HTML by the macros of report/blocks.html, figures and tables with their numbers."""

import re
from pathlib import Path

from markupsafe import Markup

from ttf.display.charts.inline import extract_drawing, make_page_element
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace
from ttf.page.report.templates import macros


def raw_block(html: str) -> str:
    """Return HTML as a raw block of .qmd, which renderers pass through."""
    lines = "\n".join(line for line in str(html).splitlines() if line.strip())
    return f"\n\n```{{=html}}\n{lines}\n```\n\n"


class Blocks:
    """The figures and tables of a page as .qmd; each appears once and is numbered by position."""

    def __init__(self, trace: Trace, templates: Path, tables: dict[str, PageTable]) -> None:
        self.trace, self.tables, self._macros = trace, tables, macros(templates)
        self.figures = trace.figures
        # tbl-name or fig-name -> label, such as "Figure 2".
        self.labels: dict[str, str] = {}
        self.charts: list[str] = []
        # Charts shown outside folds; folds skip them.
        self.open_charts: set[str] = set()

    def has_chart(self, name: str) -> bool:
        return name in self.figures and not self.figures[name]["empty"]

    def has_table(self, name: str) -> bool:
        return name in self.tables

    def figure(self, name: str) -> str:
        """Return a chart as HTML, or "" if it is empty or already on the page."""
        if not self.has_chart(name) or name in self.charts:
            return ""
        entry, folder = self.figures[name], self.trace.folder / "figures"
        self.charts.append(name)
        self.labels[f"fig-{name.replace('_', '-')}"] = f"Figure {len(self.charts)}"
        drawings = {
            width: Markup(
                make_page_element(
                    extract_drawing(file.read_text(encoding="utf-8")), f"{name}-{width}", entry["title"], entry["alt"]
                )
            )
            for width, file in (("wide", folder / f"{name}.svg"), ("narrow", folder / f"{name}.narrow.svg"))
            if width == "wide" or entry["narrow"]
        }
        return str(self._macros.figure(name, entry, drawings))

    def chart(self, name: str) -> str:
        """Return a chart for a fold as .qmd."""
        html = "" if name in self.open_charts else self.figure(name)
        return raw_block(html) if html else ""

    def table(self, name: str, caption: str) -> str:
        """Return a table with its caption (Markdown) as .qmd, or "" if it has no rows."""
        table_args = self.tables.get(name)
        if not table_args:
            return ""
        self.labels[f"tbl-{name}"] = f"Table {sum(label.startswith('tbl-') for label in self.labels) + 1}"
        files = str(self._macros.table_files(Path(table_args.contract.path).name))
        body = raw_block(table_args.html(name) + files)
        return f"\n:::: {{#table-{name} .table-figure}}\n::: {{.caption}}\n{caption}\n:::\n{body}::::\n\n"


def count_blocks(qmd: str) -> tuple[int, int]:
    """Return the numbers of tables and figures in a .qmd text."""
    return len(re.findall(r'<table data-name="', qmd)), len(re.findall(r'<figure class="figure"', qmd))
