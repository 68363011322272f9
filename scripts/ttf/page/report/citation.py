"""The citation of a page."""

import re
from dataclasses import dataclass

from ttf.page.publication_record import Publication


@dataclass(frozen=True)
class Citation:
    """A citation as one line and as BibTeX."""

    line: str
    bibtex: str
    has_author: bool = True
    version: str = ""


def make_citation(
    publication: Publication, title: str, period: str, key_name: str, is_whole_study: bool = True
) -> Citation:
    """Return the citation of a page on data of a period ("" if unknown).

    Authors are those of the configuration. Its title precedes that of the page, or replaces it if the page is of the
    whole study. The address is that of the results, else of the code, else none. key_name: the trace or study.
    """
    own_title, url = publication.own_title, publication.url or publication.code_url
    subject = own_title if own_title and is_whole_study else ": ".join(filter(None, (own_title, title)))
    subject += f" ({period})" if period else ""
    note = f"Time to Failure report, version {publication.version}"
    names = [(_escape_tex(author.name), author) for author in publication.authors]
    fields = {
        "author": " and ".join(name if author.person else f"{{{name}}}" for name, author in names),
        "title": f"{{{_escape_tex(subject)}}}",
        "year": publication.year,
        "note": _escape_tex(note),
        "doi": publication.doi,
        "url": url,
    }
    key = re.sub(r"\W", "", f"ttf{key_name}")
    lines = ",\n".join(f"  {field} = {{{value}}}" for field, value in fields.items() if value)
    authors = "; ".join(author.name for author in publication.authors)
    line = ". ".join(filter(None, (authors, subject, ", ".join(filter(None, (note, publication.year))))))
    address = f"https://doi.org/{publication.doi}" if publication.doi else url
    line += f". {address}" if address else "."
    return Citation(line, f"@misc{{{key},\n{lines}\n}}\n", bool(publication.authors), publication.version)


def _escape_tex(text: str) -> str:
    flat = " ".join(text.replace("\\", " ").split())
    return re.sub(r"([&%$#_{}~^])", r"\\\1", flat)
