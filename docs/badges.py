"""Badges for the README, docs/gallery/<name>.svg, of what pyproject.toml and config/claims.yaml say.

usage: badges.py FOLDER   (make gallery)
"""

import sys
import tomllib
from html import escape
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
# In pixels; a letter's width is the mean of the font's.
HEIGHT, PADDING, LETTER = 20, 7, 6
LABEL, VALUE = "#444444", "#0072B2"


def facts() -> dict[str, tuple[str, str]]:
    """Badge -> what it is about, and what it says of it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    snakemake = next(need for need in project["dependencies"] if need.startswith("snakemake"))
    claims = yaml.safe_load((ROOT / "config" / "claims.yaml").read_text(encoding="utf-8"))
    return {
        "python": ("Python", project["requires-python"].replace(">=", "≥ ")),
        "snakemake": ("Snakemake", snakemake.removeprefix("snakemake").split(",")[0].replace(">=", "≥ ")),
        "licence": ("licence", project["license"]),
        "claims": ("published numbers on the scorecard", f"{len(claims['claims'])}"),
    }


def badge(label: str, value: str) -> str:
    """A badge as SVG: two texts, each on its colour, set to a width that hangs on no font."""
    left, right = (LETTER * len(text) + 2 * PADDING for text in (label, value))
    said = escape(f"{label}: {value}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}"',
        f' role="img" aria-label="{said}">',
        f"<title>{said}</title>",
        f'<rect width="{left}" height="{HEIGHT}" fill="{LABEL}"/>',
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{VALUE}"/>',
        '<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">',
        *(
            f'<text x="{x + PADDING}" y="14" textLength="{LETTER * len(text)}">{escape(text)}</text>'
            for x, text in ((0, label), (left, value))
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
