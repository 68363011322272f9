"""What sections of the report are made of: numbers to name, and figures and tables as fenced divs of .qmd."""

import json

from ttf.report import words


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


def chart_block(identifier: str, spec: dict, about: dict, picture: str) -> str:
    """A chart with its caption: drawn from its Vega-Lite `spec` on the page, the file `picture` in the PDF.

    `about` is its entry in index.json. A renderer leaves out the raw block that is not for its format.
    """
    # A "<" can stand only inside a string of the JSON: escaped, nothing in it can end the script or mean a shortcode.
    text = json.dumps(spec, ensure_ascii=False, separators=(",", ":"), sort_keys=True).replace("<", "\\u003c")
    html = (
        f'<div class="chart" id="chart-{identifier}" role="img" aria-label="{words.attribute(about["alt"])}"></div>\n'
        f'<script>charts.push(["chart-{identifier}", {text}])</script>'
    )
    typst = f"#chart({words.typst_string(picture)}, {words.typst_string(about['alt'])})"
    return div(f"fig-{identifier}", html, words.markdown(about["caption"]), typst)


def div(identifier: str, html: str, caption: str, typst: str = "") -> str:
    """HTML and its caption (Markdown) as a fenced div that can be referred to: fig-... or tbl-...

    `typst`, one line, stands in the PDF for HTML that cannot; a table needs none, its HTML is read for the PDF.
    """
    lines = "\n".join(line for line in html.splitlines() if line.strip())
    printed = f"```{{=typst}}\n{typst}\n```\n\n" if typst else ""
    return f"::: {{#{identifier}}}\n\n```{{=html}}\n{lines}\n```\n\n{printed}{caption}\n\n:::\n"
