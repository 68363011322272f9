"""The template for both renderers: report/page.html with style, scripts and chart program.

A page loads nothing from a network. The chart program is compressed text until a reader explores a chart.
"""

from pathlib import Path

from ttf.display.charts.theme import tokens_style


def template(folder: Path, vega: str) -> str:
    """Return the Pandoc template from the files in report/. vega: the chart program, deflated, as base64."""
    page = folder / "page"
    scripts = "\n".join(file.read_text(encoding="utf-8") for file in sorted(page.glob("*.js")))
    parts = {
        "style": f"<style>\n{tokens_style()}{(page / 'page.css').read_text(encoding='utf-8')}</style>",
        "vega": f'<script type="text/plain" id="vega-program">{vega}</script>',
        "script": f"<script>\n(() => {{\n{scripts}\n}})();\n</script>",
    }
    filled = (folder / "page.html").read_text(encoding="utf-8")
    for name, text in parts.items():
        filled = filled.replace(f"<!-- {name} -->", text.replace("$", "$$"))  # $ starts a variable in Pandoc
    return filled
