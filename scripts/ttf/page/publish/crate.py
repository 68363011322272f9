"""ro-crate-metadata.json: RO-Crate 1.1 with the profile Workflow RO-Crate 1.0.

Written without the library rocrate: nearly every line states a fact, which the library would need as well.
"""

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from ttf.page.publication_record import Creator, Publication
from ttf.page.publish.entities import entity, ids, refer
from ttf.page.publish.files import PackedFile

METADATA = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"
# A term of schema.org that the context of 1.1 lacks.
_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "http://schema.org/sha256"}]
_PROFILES = ["https://w3id.org/ro/crate/1.1", "https://w3id.org/workflowhub/workflow-ro-crate/1.0"]
_SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"


def make_crate(
    files: Sequence[PackedFile],
    publication: Publication,
    date: str,
    snakemake_version: str,
) -> str:
    """Return the RO-Crate metadata (JSON-LD) of the files in a folder. date: of publication, YYYY-MM-DD."""
    creators = [_creator_entity(creator, index) for index, creator in enumerate(publication.creators, start=1)]
    license_ = f"https://spdx.org/licenses/{quote(publication.license)}"
    trace_entities = [_trace_entity(name, entry) for name, entry in publication.traces.items()]
    papers = [
        entity(f"#citation-{name}", "ScholarlyArticle", name=entry["citation"])
        for name, entry in publication.traces.items()
        if entry.get("citation")
    ]
    parts = [_file_entity(file) for file in files]
    for part in parts:
        if part["@id"] == "README.md":
            part["about"] = {"@id": "./"}
        if part["@id"] == WORKFLOW:
            part |= entity(
                WORKFLOW,
                ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
                name=publication.workflow,
                creator=ids(creators),
                dateCreated=date,
                license={"@id": license_},
                programmingLanguage={"@id": _SNAKEMAKE},
                version=publication.version,
                url=publication.code_url or None,
            )
    root = entity(
        "./",
        "Dataset",
        name=publication.title,
        description=publication.description,
        datePublished=date,
        license={"@id": license_},
        author=ids(creators),
        creator=ids(creators),
        version=publication.version,
        keywords=", ".join(publication.keywords),
        mainEntity={"@id": WORKFLOW},
        isBasedOn=ids(trace_entities),
        hasPart=ids(parts),
        citation=ids(papers) or None,
        url=publication.url or None,
        identifier=f"https://doi.org/{publication.doi}" if publication.doi else None,
    )
    descriptor = entity(METADATA, "CreativeWork", about={"@id": "./"}, conformsTo=refer(*_PROFILES))
    terms = f"{publication.license}, of the workflow and the results; its text is the file LICENSE. "
    terms += "The traces that the results come from have licences of their own."
    context_entities = [
        *creators,
        entity(license_, "CreativeWork", name=publication.license, description=terms),
        entity(
            _SNAKEMAKE,
            "ComputerLanguage",
            name="Snakemake",
            identifier={"@id": "https://doi.org/10.12688/f1000research.29032.2"},
            url={"@id": "https://snakemake.github.io"},
            version=snakemake_version,
        ),
    ]
    columns = {column["@id"]: column for file in files for column in _column_entities(file)}
    graph = [descriptor, root, *parts, *columns.values(), *context_entities, *trace_entities, *papers]
    return json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=1, ensure_ascii=False) + "\n"


def _file_entity(file: PackedFile) -> dict:
    is_code = PurePosixPath(file.path).suffix in (".py", ".smk", ".sh", ".lua")
    return entity(
        quote(file.path),
        ["File", "SoftwareSourceCode"] if is_code else "File",
        name=file.name,
        description=file.description or None,
        variableMeasured=ids(_column_entities(file)) or None,
        contentSize=str(len(file.content)),
        encodingFormat=file.media_type,
        sha256=file.sha256,
    )


def _column_entities(file: PackedFile) -> list[dict]:
    table = PurePosixPath(file.path).stem
    return [
        entity(
            f"#{table}-{name}", "PropertyValue", name=name, description=column.description, unitText=column.unit or None
        )
        for name, column in file.columns.items()
    ]


def _creator_entity(creator: Creator, index: int) -> dict:
    creator_id = f"https://orcid.org/{creator.orcid}" if creator.orcid else f"#creator-{index}"
    kind = "Person" if creator.person else "Organization"
    return entity(creator_id, kind, name=creator.name, affiliation=creator.affiliation or None)


def _trace_entity(name: str, entry: dict) -> dict:
    text = "Synthetic: no finding from it says anything about a real cluster. " if entry["synthetic"] else ""
    text += f"Source: {entry['source']}. " if entry.get("source") else ""
    text += f"Licence: {entry['licence']}." if entry.get("licence") else ""
    title = f"{name}: {entry.get('title', 'a trace')}"
    return entity(f"#trace-{name}", "CreativeWork", name=title, description=text.strip() or None)
