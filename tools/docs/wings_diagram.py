"""Draw the diagram in docs/architecture.md: the wings of scripts/ttf, their sizes and imports.

usage: wings_diagram.py FILE   (make docs)
"""

import sys
from pathlib import Path

from ttf.engine.provenance.syntax import read_syntax

TTF = Path(__file__).parents[2] / "scripts" / "ttf"
# In the order of the data flow: a module imports from its own wing and from earlier ones.
WINGS = ("engine", "raw", "records", "formats", "stats", "display", "analyses", "page", "study", "commands")
BEGIN, END = "<!-- diagram: begin -->", "<!-- diagram: end -->"


def list_imports(wing: str) -> list[str]:
    """List the other wings from which a wing imports, without `engine`, which all wings import."""
    imports = (line for file in (TTF / wing).rglob("*.py") for line in read_syntax(file).imports)
    wings = {module.split(".")[1] for module, *_ in imports if module.startswith("ttf.")}
    return [name for name in WINGS[1:] if name in wings - {wing}]


def draw_diagram() -> str:
    """Draw the wings as a Mermaid flow chart; an arrow points from a wing to one that it imports from."""
    lines = ["```mermaid", "flowchart TB"]
    for wing in WINGS:
        files = [*(TTF / wing).rglob("*.py")]
        length = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        # Rounded, so that the diagram does not change with each line.
        lines.append(f'  {wing}["{wing}<br/>{round(length, -3) // 1000 or 1},000 lines"]')
    lines += [f"  {wing} --> {' & '.join(names)}" for wing in WINGS if (names := list_imports(wing))]
    return "\n".join([*lines, "```"])


def replace_diagram(text: str) -> str:
    """Return the page with the current diagram."""
    head, _, remainder = text.partition(BEGIN)
    _, _, tail = remainder.partition(END)
    return f"{head}{BEGIN}\n\n{draw_diagram()}\n\n{END}{tail}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(replace_diagram(page.read_text(encoding="utf-8")), encoding="utf-8")
