"""The diagram in docs/architecture.md: the wings of scripts/ttf, their sizes and which imports which.

usage: wings_diagram.py FILE   (make docs)
"""

import ast
import sys
from pathlib import Path

TTF = Path(__file__).parents[1] / "scripts" / "ttf"
# In the order in which data travel: a module imports from its own wing and from those before it.
WINGS = ("engine", "raw", "records", "formats", "stats", "display", "analyses", "page")
BEGIN, END = "<!-- diagram: begin -->", "<!-- diagram: end -->"


def list_imports(wing: str) -> list[str]:
    """List the other wings that the modules of a wing import from; `engine`, which all do, is left out."""
    modules = {
        node.module
        for file in (TTF / wing).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    return [
        name
        for name in WINGS[1:]
        if name != wing and any(f"{module}.".startswith(f"ttf.{name}.") for module in modules)
    ]


def draw_diagram() -> str:
    """Draw the wings as a Mermaid flow chart; an arrow points from a wing to one that it imports from."""
    lines = ["```mermaid", "flowchart TB"]
    for wing in WINGS:
        files = [*(TTF / wing).rglob("*.py")]
        length = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        # Rounded, so that the diagram changes with the structure and not with each line.
        lines.append(f'  {wing}["{wing}<br/>{round(length, -3) // 1000 or 1},000 lines"]')
    lines += [f"  {wing} --> {' & '.join(names)}" for wing in WINGS if (names := list_imports(wing))]
    return "\n".join([*lines, "```"])


def replace_diagram(text: str) -> str:
    """Return the page with the diagram of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{draw_diagram()}\n\n{END}{after}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(replace_diagram(page.read_text(encoding="utf-8")), encoding="utf-8")
