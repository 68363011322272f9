"""ro-crate-metadata.json: RO-Crate 1.1, in the profile for workflows, Workflow RO-Crate 1.0."""

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from ttf.publish.about import Creator, Publication
from ttf.publish.files import Published

METADATA = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"
# schema.org has the term, the context of 1.1 not yet.
_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "http://schema.org/sha256"}]
_PROFILES = ["https://w3id.org/ro/crate/1.1", "https://w3id.org/workflowhub/workflow-ro-crate/1.0"]
_SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"


def crate(files: Sequence[Published], about: Publication, date: str, snakemake_version: str) -> str:
    """The metadata of the files, which lie in the same folder, as JSON-LD. date: of publication, YYYY-MM-DD."""
    creators = [_creator(creator, place) for place, creator in enumerate(about.creators, start=1)]
    license_ = f"https://spdx.org/licenses/{quote(about.license)}"
    cited = [_trace(name, entry) for name, entry in about.traces.items()]
    papers = [
        {"@id": f"#citation-{name}", "@type": "ScholarlyArticle", "name": entry["citation"]}
        for name, entry in about.traces.items()
        if entry.get("citation")
    ]
    parts = [_file(file) for file in files]
    for part in parts:
        if part["@id"] == "README.md":
            part["about"] = {"@id": "./"}
        if part["@id"] == WORKFLOW:
            part |= {
                "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
                "name": about.workflow,
                "creator": _ids(creators),
                "dateCreated": date,
                "license": {"@id": license_},
                "programmingLanguage": {"@id": _SNAKEMAKE},
                "version": about.version,
            }
            part |= {"url": about.code_url} if about.code_url else {}
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": about.title,
        "description": about.description,
        "datePublished": date,
        "license": {"@id": license_},
        "author": _ids(creators),
        "creator": _ids(creators),
        "version": about.version,
        "keywords": ", ".join(about.keywords),
        "mainEntity": {"@id": WORKFLOW},
        "isBasedOn": _ids(cited),
        "hasPart": _ids(parts),
    }
    root |= {"citation": _ids(papers)} if papers else {}
    root |= {"url": about.url} if about.url else {}
    descriptor = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": [{"@id": profile} for profile in _PROFILES],
    }
    around = [
        *creators,
        {
            "@id": license_,
            "@type": "CreativeWork",
            "name": about.license,
            "description": f"{about.license}, of the workflow and the results; its text is the file LICENSE. "
            "The traces that the results come from have licences of their own.",
        },
        {
            "@id": _SNAKEMAKE,
            "@type": "ComputerLanguage",
            "name": "Snakemake",
            "identifier": {"@id": "https://doi.org/10.12688/f1000research.29032.2"},
            "url": {"@id": "https://snakemake.github.io"},
            "version": snakemake_version,
        },
    ]
    columns = {entity["@id"]: entity for file in files for entity in _columns(file)}
    graph = [descriptor, root, *parts, *columns.values(), *around, *cited, *papers]
    return json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=1, ensure_ascii=False) + "\n"


def _file(file: Published) -> dict:
    entity = {"@id": quote(file.path), "@type": "File", "name": file.name}
    if PurePosixPath(file.path).suffix in (".py", ".smk", ".sh", ".lua"):
        entity["@type"] = ["File", "SoftwareSourceCode"]
    if file.what:
        entity["description"] = file.what
    if file.columns:
        entity["variableMeasured"] = _ids(_columns(file))
    return entity | {
        "contentSize": str(len(file.content)),
        "encodingFormat": file.media_type,
        "sha256": file.sha256,
    }


def _columns(file: Published) -> list[dict]:
    """The columns of a table, those of one contract the same in every trace."""
    table = PurePosixPath(file.path).stem
    return [
        {"@id": f"#{table}-{name}", "@type": "PropertyValue", "name": name, "description": column.about}
        | ({"unitText": column.unit} if column.unit else {})
        for name, column in file.columns.items()
    ]


def _creator(creator: Creator, place: int) -> dict:
    entity = {
        "@id": f"https://orcid.org/{creator.orcid}" if creator.orcid else f"#creator-{place}",
        "@type": "Person" if creator.person else "Organization",
        "name": creator.name,
    }
    return entity | ({"affiliation": creator.affiliation} if creator.affiliation else {})


def _trace(name: str, entry: dict) -> dict:
    """The data a result was made from, which are not in the archive."""
    text = "Synthetic: no finding from it says anything about a real cluster. " if entry["synthetic"] else ""
    text += f"Source: {entry['source']}. " if entry.get("source") else ""
    text += f"Licence: {entry['licence']}." if entry.get("licence") else ""
    entity = {"@id": f"#trace-{name}", "@type": "CreativeWork", "name": f"{name}: {entry.get('title', 'a trace')}"}
    return entity | ({"description": text.strip()} if text else {})


def _ids(entities: list[dict]) -> list[dict] | dict:
    """References to the entities; one stands by itself, as the specification would have it."""
    found = [{"@id": entity["@id"]} for entity in entities]
    return found[0] if len(found) == 1 else found
