"""What pages are made of: HTML by the macros of report/blocks.html, and figures and tables with their places."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from ttf.display import phrases
from ttf.display.charts.inline import bare, inline
from ttf.display.report_tables import Shown
from ttf.display.report_trace import Trace
from ttf.engine import words
from ttf.page.brief.mini_charts import mini


@cache
def macros(templates: Path, name: str = "blocks.html"):
    """The macros of a file of HTML; whatever they are given is escaped."""
    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    jinja.filters |= {
        "said": lambda text: Markup(phrases.html(text)),
        "plain": phrases.plain,
        "mini": lambda about: Markup(mini(about)),
        "plural": words.plural,
    }
    return jinja.get_template(name).module


def raw(html: str) -> str:
    """HTML as a block of .qmd, that no renderer reads."""
    lines = "\n".join(line for line in str(html).splitlines() if line.strip())
    return f"\n\n```{{=html}}\n{lines}\n```\n\n"


class Blocks:
    """The figures and tables of a page as .qmd: each stands once, and is counted where it stands."""

    def __init__(self, trace: Trace, templates: Path, tables: Mapping[str, Shown]) -> None:
        self.trace, self.tables, self._macros = trace, tables, macros(templates)
        self.figures = trace.figures
        # tbl-name or fig-name -> what it is called; charts in the page.
        self.places: dict[str, str] = {}
        self.charts: list[str] = []
        # Those that stand open, wherever else a text would place them.
        self.open: set[str] = set()

    def has_chart(self, name: str) -> bool:
        return name in self.figures and not self.figures[name]["empty"]

    def has_table(self, name: str) -> bool:
        return name in self.tables

    def figure(self, name: str) -> str:
        """A chart as HTML; nothing where it is empty, or has its place already."""
        if not self.has_chart(name) or name in self.charts:
            return ""
        about, folder = self.figures[name], self.trace.folder / "figures"
        self.charts.append(name)
        self.places[f"fig-{name.replace('_', '-')}"] = f"Figure {len(self.charts)}"
        drawings = {
            width: Markup(
                inline(bare(file.read_text(encoding="utf-8")), f"{name}-{width}", about["title"], about["alt"])
            )
            for width, file in (("wide", folder / f"{name}.svg"), ("narrow", folder / f"{name}.narrow.svg"))
            if width == "wide" or about["narrow"]
        }
        return str(self._macros.figure(name, about, drawings))

    def chart(self, name: str) -> str:
        """A chart of a fold, as .qmd."""
        html = "" if name in self.open else self.figure(name)
        return raw(html) if html else ""

    def table(self, name: str, caption: str) -> str:
        """A table with its caption (Markdown), as .qmd; nothing where it has no rows."""
        shown = self.tables.get(name)
        if not shown:
            return ""
        count = sum(place.startswith("tbl-") for place in self.places) + 1
        self.places[f"tbl-{name}"] = f"Table {count}"
        below = str(self._macros.table_files(Path(shown.contract.path).name))
        html = shown.html(name)
        return f"\n:::: {{#table-{name} .table-figure}}\n::: {{.caption}}\n{caption}\n:::\n{raw(html + below)}::::\n\n"


def counted(qmd: str) -> tuple[int, int]:
    """How many tables and figures stand in some .qmd."""
    return len(re.findall(r'<table data-name="', qmd)), len(re.findall(r'<figure class="figure"', qmd))
