"""The citation of a page."""

import re
from dataclasses import dataclass

from ttf.page.publication_record import Publication


@dataclass(frozen=True)
class Citation:
    """A citation as one line and as BibTeX."""

    line: str
    bibtex: str


def make_citation(publication: Publication, title: str, period: str, key_name: str) -> Citation:
    """Return the citation of the page `title` on data of a period ("" if unknown); key_name: the trace or study."""
    authors = "; ".join(creator.name for creator in publication.creators)
    subject = f"Time to Failure report: {title}" + (f" ({period})" if period else "")
    names = [(_escape_tex(creator.name), creator) for creator in publication.creators]
    fields = {
        "author": " and ".join(name if creator.person else f"{{{name}}}" for name, creator in names),
        "title": f"{{{_escape_tex(subject)}}}",
        "note": _escape_tex(f"Version {publication.version}"),
        **({"url": publication.url} if publication.url else {}),
    }
    key = re.sub(r"\W", "", f"ttf{key_name}") or "ttf"
    lines = ",\n".join(f"  {field} = {{{value}}}" for field, value in fields.items())
    return Citation(f"{authors}. {subject}. Version {publication.version}.", f"@misc{{{key},\n{lines}\n}}\n")


def _escape_tex(text: str) -> str:
    flat = " ".join(text.replace("\\", " ").split())
    return re.sub(r"([&%$#_{}~^])", r"\\\1", flat)
