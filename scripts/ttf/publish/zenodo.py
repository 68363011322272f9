""".zenodo.json: the fields of a deposit, for whoever uploads the archive to Zenodo."""

import json
from html import escape

from ttf.publish.about import Publication


def deposit(about: Publication, date: str) -> str:
    """The metadata of a deposit. Zenodo reads descriptions as HTML, so all texts in it are escaped."""
    creators = [
        {key: text for key, text in (("name", of.name), ("affiliation", of.affiliation), ("orcid", of.orcid)) if text}
        for of in about.creators
    ]
    related = [{"identifier": doi, "relation": "cites", "scheme": "doi"} for doi in about.dois()]
    related += [
        {"identifier": address, "relation": "isDerivedFrom", "resource_type": "dataset", "scheme": "url"}
        for address in about.sources()
    ]
    if about.code_url:
        related.append(
            {"identifier": about.code_url, "relation": "isCompiledBy", "resource_type": "software", "scheme": "url"}
        )
    fields = {
        "title": about.title,
        "upload_type": "dataset",
        "description": f"<p>{escape(about.description)}</p><ul>{''.join(map(_trace, about.traces.items()))}</ul>",
        "creators": creators,
        "access_right": "open",
        "license": about.license,
        "keywords": about.keywords,
        "language": "eng",
        "publication_date": date,
        "version": about.version,
        "related_identifiers": related,
        "references": [entry["citation"] for entry in about.traces.values() if entry.get("citation")],
    }
    return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def _trace(item: tuple[str, dict]) -> str:
    name, entry = item
    text = f"{name}: {entry.get('title', 'a trace')}"
    if entry["synthetic"]:
        text += ". Synthetic: no finding from it says anything about a real cluster"
    if entry.get("licence"):
        text += f". Licence of the data: {entry['licence']}"
    return f"<li>{escape(text)}.</li>"
