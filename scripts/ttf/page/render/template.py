"""The template that both renderers fill: report/page.html with the style, the scripts and the chart program in it.

Nothing in a page comes from a network, and the chart program is text until somebody asks for it.
"""

from collections.abc import Mapping
from pathlib import Path

from ttf.display.charts.theme import tokens_style


def template(folder: Path, vega: str) -> str:
    """The template of Pandoc, from the files of the folder report/. vega: the chart program, deflated, as base64."""
    page = folder / "page"
    scripts = "\n".join(file.read_text(encoding="utf-8") for file in sorted(page.glob("*.js")))
    parts = {
        "style": f"<style>\n{tokens_style()}{(page / 'page.css').read_text(encoding='utf-8')}</style>",
        "vega": f'<script type="text/plain" id="vega-program">{vega}</script>',
        "script": f"<script>\n(() => {{\n{scripts}\n}})();\n</script>",
    }
    return _filled((folder / "page.html").read_text(encoding="utf-8"), parts)


def _filled(template: str, parts: Mapping[str, str]) -> str:
    for name, text in parts.items():
        template = template.replace(f"<!-- {name} -->", text.replace("$", "$$"))  # which means something to Pandoc
    return template
