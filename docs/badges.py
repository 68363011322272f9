"""Draw the README's badges from pyproject.toml and config/claims.yaml: docs/gallery/<name>.svg.

usage: badges.py FOLDER   (make gallery)
"""

import sys
import tomllib
from html import escape
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
# In pixels; the width of a letter is the font's mean.
HEIGHT, PADDING, LETTER = 20, 7, 6
LABEL, VALUE = "#444444", "#0072B2"


def facts() -> dict[str, tuple[str, str]]:
    """Return label and value by badge."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    snakemake = next(requirement for requirement in project["dependencies"] if requirement.startswith("snakemake"))
    claims = yaml.safe_load((ROOT / "config" / "claims.yaml").read_text(encoding="utf-8"))
    return {
        "python": ("Python", project["requires-python"].replace(">=", "≥ ")),
        "snakemake": ("Snakemake", snakemake.removeprefix("snakemake").split(",")[0].replace(">=", "≥ ")),
        "licence": ("licence", project["license"]),
        "claims": ("published numbers on the scorecard", f"{len(claims['claims'])}"),
    }


def badge(label: str, value: str) -> str:
    """Draw a badge as SVG: two texts on two colours, with a width that does not depend on the font."""
    label_width, value_width = (LETTER * len(text) + 2 * PADDING for text in (label, value))
    title = escape(f"{label}: {value}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{label_width + value_width}" height="{HEIGHT}"',
        f' role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f'<rect width="{label_width}" height="{HEIGHT}" fill="{LABEL}"/>',
        f'<rect x="{label_width}" width="{value_width}" height="{HEIGHT}" fill="{VALUE}"/>',
        '<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">',
        *(
            f'<text x="{x + PADDING}" y="14" textLength="{LETTER * len(text)}">{escape(text)}</text>'
            for x, text in ((0, label), (label_width, value))
        ),
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (label, value) in facts().items():
        (folder / f"{name}.svg").write_text(badge(label, value), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
