"""How a page asks to be cited."""

import re
from dataclasses import dataclass

from ttf.page.publication_record import Publication


@dataclass(frozen=True)
class Citation:
    """In a line, and as BibTeX."""

    line: str
    bibtex: str


def cited(about: Publication, title: str, period: str, name: str) -> Citation:
    """Of a page `title` on the data of some period ("" where it is not known); name: of the trace or the study."""
    authors = "; ".join(creator.name for creator in about.creators)
    what = f"Time to Failure report: {title}" + (f" ({period})" if period else "")
    fields = {
        "author": " and ".join(_tex(one.name) if one.person else f"{{{_tex(one.name)}}}" for one in about.creators),
        "title": f"{{{_tex(what)}}}",
        "note": _tex(f"Version {about.version}"),
        **({"url": about.url} if about.url else {}),
    }
    key = re.sub(r"\W", "", f"ttf{name}") or "ttf"
    lines = ",\n".join(f"  {field} = {{{value}}}" for field, value in fields.items())
    return Citation(f"{authors}. {what}. Version {about.version}.", f"@misc{{{key},\n{lines}\n}}\n")


def _tex(text: str) -> str:
    """A text as BibTeX holds it: on one line, its signs escaped."""
    flat = " ".join(text.replace("\\", " ").split())
    return re.sub(r"([&%$#_{}~^])", r"\\\1", flat)
