"""A tar file that has the same bytes whenever its files have, and .zenodo.json with the fields of a deposit.

No bag (BagIt): its files lie below data/, away from where ro-crate-metadata.json and the pages look for them.
"""

import io
import json
import lzma
import tarfile
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from ttf.page.publication_record import Publication
from ttf.page.publish.files import Published


def tar_of(files: Iterable[Published], folder: str, date: str) -> bytes:
    """The files under one folder, by path: without an owner, mode 644, all of the day `date` (YYYY-MM-DD) at 0:00 UTC.

    A day that is the publication's rather than 1970, at which tar would warn.
    """
    seconds = int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp())
    packed = io.BytesIO()
    with (
        lzma.open(packed, "wb", preset=6) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in sorted(files, key=lambda file: file.path):
            entry = tarfile.TarInfo(f"{folder}/{file.path}")
            entry.size, entry.mtime, entry.mode = len(file.content), seconds, 0o644
            tar.addfile(entry, io.BytesIO(file.content))
    return packed.getvalue()


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
