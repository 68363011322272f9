"""What sections of the report are made of: numbers to name, and figures and tables as fenced divs of .qmd."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from ttf.charts.theme import page_config
from ttf.columns import FEWEST_CLUSTERS
from ttf.report import words
from ttf.report.packing import as_script, packed

_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z]|n )")


class Numbers(dict):
    """The metrics of a trace as templates ask for them; a key that is not there is an error, not a blank."""

    def __getitem__(self, key: str):
        return super().__getitem__(key)["value"]

    def has(self, key: str) -> bool:
        return key in self

    def value(self, key: str, otherwise):
        return self[key] if self.has(key) else otherwise

    def n(self, key: str) -> int:
        return super().__getitem__(key)["n"]

    def unit(self, key: str) -> str:
        return super().__getitem__(key)["unit"]

    def interval(self, ends: str, like: str | None = None, confidence: str = "95") -> str:
        """The interval that a sentence gives, in words: the clustered one, else the exact one with its proviso.

        ends: the keys of the ends with braces for `low` and `high`, and `low_clustered` and `high_clustered`, such as
        mttf.ci_{}_s; like: the key of the estimate, in whose unit a time is given.
        """
        clustered = self._ends(ends, "_clustered", like)
        words_of = clustered or f"{self._ends(ends, '', like)} if independent"
        return f"{confidence}% CI {words_of}"

    def independent(self, ends: str, unit: str, like: str | None = None) -> str:
        """The sentence that says by what the interval is clustered, and what the exact one would be."""
        exact, about = self._ends(ends, "", like), ends.partition("{")[0].rpartition(".")[0]
        by = self.value(f"{about}.cluster_by", None)
        if by is None:
            return (
                f"The interval holds if {unit}s fail independently; the trace names nothing that they have in common."
            )
        clusters = f"{words.number(self[f'{about}.clusters'])} effective clusters"
        if self._ends(ends, "_clustered", like) is None:
            said = f"The interval holds only if {unit}s fail independently: by {by} there are {clusters}"
            few = self[f"{about}.clusters"] < FEWEST_CLUSTERS
            return f"{said}, {'too few' if few else 'too much alike'} to tell."
        return f"Clustered by {by} ({clusters}); if {unit}s failed independently, it would be {exact}."

    def _ends(self, ends: str, kind: str, like: str | None) -> str | None:
        low, high = (ends.format(end + kind) for end in ("low", "high"))
        if low not in self:
            return None
        unit = self.unit(low)
        worded = {"s": words.duration, "share": words.share}.get(unit, words.number)
        if high not in self:
            return f"{worded(self[low])} or more"
        if unit == "s":
            return words.until(self[low], self[high], self[like] if like else None)
        return words.span(worded(self[low]), worded(self[high]))


class Charts:
    """The charts of the page: gives the place of each as .qmd, and keeps what is drawn there for `script`."""

    def __init__(self) -> None:
        self.linear: dict[str, dict] = {}
        self.logarithmic: dict[str, dict] = {}

    def place(self, identifier: str, folder: Path, name: str, figures: Mapping[str, Mapping], rule: str) -> str:
        """A chart of `folder` (of one trace) with its files and its caption; nothing where it is empty.

        figures: name -> its entry in index.json; rule: by which it was drawn. A chart whose name with `_log` is that of
        another has both of them in its place, with a switch; then that other has no place of its own.
        """
        ways = [way for way in (name, f"{name}_log") if way in figures and not figures[way]["empty"]]
        first = name.removesuffix("_log")
        if not ways or (name != first and not figures.get(first, {"empty": True})["empty"]):
            return ""
        specs = [json.loads((folder / "figures" / f"{way}.vl.json").read_text(encoding="utf-8")) for way in ways]
        about = dict(figures[ways[0]])
        place = f"chart-{identifier}"
        self.linear[place] = specs[0]
        switch = ""
        if len(ways) > 1:
            self.logarithmic[place] = specs[1]
            switch = f'<div class="switch" role="group" aria-label="Axes" data-chart="{place}"></div>\n'
            about["caption"] += _what_else(about["caption"], figures[ways[1]]["caption"])
        pictures = [f"figures/{folder.name}/{way}.svg" for way in ways]
        below = _files(folder, ways, about["tables"], rule)
        return chart_block(identifier, about, *pictures, above=switch, below=below)

    def script(self) -> str:
        """JavaScript with everything that is drawn, and the look that all charts share."""
        small = packed(self.linear, {"logarithmic": self.logarithmic})
        return as_script("packedCharts", small) + as_script("chartLook", page_config())


def chart_block(identifier: str, about: Mapping, *pictures: str, above: str = "", below: str = "") -> str:
    """The place of a chart with its caption: on the page for its Vega-Lite, in the PDF the files `pictures`.

    `about` is its entry in index.json; above, below: HTML. A renderer leaves out the raw block of another format.
    """
    html = (
        f'<div class="chart" id="chart-{identifier}" role="img" aria-label="{words.attribute(about["alt"])}"></div>\n'
    )
    alt, of = words.typst_string(about["alt"]), len(pictures)
    typst = "".join(f"#chart({words.typst_string(file)}, {alt}, of: {of})" for file in pictures)
    return div(f"fig-{identifier}", above + html + below, words.markdown(about["caption"]), typst)


def _what_else(linear: str, logarithmic: str) -> str:
    """What the caption of the logarithmic chart says that the linear one does not."""
    said = set(_SENTENCE_END.split(linear))
    more = [sentence for sentence in _SENTENCE_END.split(logarithmic) if sentence not in said]
    return f" On logarithmic axes: {' '.join(more)}" if more else ""


def _files(folder: Path, ways: Sequence[str], tables: Sequence[str], rule: str) -> str:
    """Where the numbers of a chart are, the chart as a file, and how it came about."""

    def link(path: str, text: str) -> str:
        return f'<a class="file" href="{href(f"{folder.name}/{path}")}">{text}</a>'

    data = ", ".join(link(table, table.rpartition("/")[2]) for table in tables if table.endswith(".csv"))
    charts = []
    for way in ways:
        kind = "" if len(ways) == 1 else " (logarithmic)" if way.endswith("_log") else " (linear)"
        charts += [link(f"figures/{way}.vl.json", f"Vega-Lite{kind}"), link(f"figures/{way}.svg", f"SVG{kind}")]
    place = "/".join(folder.parts[-3:]) if folder.name == "comparison" else folder.name
    how = (
        f"Rule <code>{rule}</code>, script <code>scripts/draw_charts.py</code>. "
        f"<code>make explain FILE=results/{place}/figures/{ways[0]}.vl.json</code> names every step back to the raw "
        "files, with the parameters and the SHA-256 of each file."
    )
    links = f"Data: {data} · {' · '.join(charts)}"
    return f'<div class="files">{links} · <details><summary>how it was made</summary>{how}</details></div>'


def href(file: str) -> str:
    """The address of a file of a trace, or of the comparison, from the page in results/studies/<name>/report/.

    On the site the page is in the folder that has those of the traces: it shortens the links of the class `file`.
    """
    of_the_study = "/" not in file or file.startswith("comparison/")
    return ("../" if of_the_study else "../../../") + quote(file)


def table_block(identifier: str, html: str, caption: str, file: str) -> str:
    """A table of `html_table` with its caption and a link to the file it shows, a path under results/."""
    kind, name = file.rpartition(".")[2].upper(), file.rpartition("/")[2]
    link = f'<div class="files">{kind}: <a class="file" href="{href(file)}">{words.attribute(name)}</a></div>'
    return div(identifier, f"{html}\n{link}", caption)


def div(identifier: str, html: str, caption: str, typst: str = "") -> str:
    """HTML and its caption (Markdown) as a fenced div that can be referred to: fig-... or tbl-...

    `typst`, one line, stands in the PDF for HTML that cannot; a table needs none, its HTML is read for the PDF.
    """
    lines = "\n".join(line for line in html.splitlines() if line.strip())
    printed = f"```{{=typst}}\n{typst}\n```\n\n" if typst else ""
    return f"::: {{#{identifier}}}\n\n```{{=html}}\n{lines}\n```\n\n{printed}{caption}\n\n:::\n"
