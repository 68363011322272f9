"""ro-crate-metadata.json: RO-Crate 1.1, in the profile for workflows, Workflow RO-Crate 1.0, and for how they ran.

By our own code, as nearly every line names a fact: the library rocrate would be told each of them all the same.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from ttf.page.publication_record import Creator, Publication
from ttf.page.publish.entities import entity, ids, refer
from ttf.page.publish.files import Published
from ttf.page.publish.run_crate import WORKFLOW_CRATE, run_of

METADATA = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"
# schema.org has the term, the context of 1.1 not yet.
_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "http://schema.org/sha256"}]
_PROFILES = ["https://w3id.org/ro/crate/1.1", WORKFLOW_CRATE]
_SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"


def crate(
    files: Sequence[Published], about: Publication, date: str, snakemake_version: str, manifest: Mapping | None = None
) -> str:
    """The metadata of the files, which lie in the same folder, as JSON-LD. date: of publication, YYYY-MM-DD.

    manifest: how they were made, where that may be told; see `ttf.page.publish.run_crate`.
    """
    creators = [_creator(creator, place) for place, creator in enumerate(about.creators, start=1)]
    license_ = f"https://spdx.org/licenses/{quote(about.license)}"
    cited = [_trace(name, entry) for name, entry in about.traces.items()]
    papers = [
        entity(f"#citation-{name}", "ScholarlyArticle", name=entry["citation"])
        for name, entry in about.traces.items()
        if entry.get("citation")
    ]
    parts = [_file(file) for file in files]
    ran, of_root, of_workflow = [], {}, {}
    if manifest is not None:
        at = [part["@id"] for part in parts]
        ran, of_root, of_workflow = run_of(manifest, at, WORKFLOW, snakemake_version, ids(creators))
    for part in parts:
        if part["@id"] == "README.md":
            part["about"] = {"@id": "./"}
        if part["@id"] == WORKFLOW:
            part |= entity(
                WORKFLOW,
                ["File", "SoftwareSourceCode", "ComputationalWorkflow", *(["HowTo"] if of_workflow else [])],
                name=about.workflow,
                creator=ids(creators),
                dateCreated=date,
                license={"@id": license_},
                programmingLanguage={"@id": _SNAKEMAKE},
                version=about.version,
                url=about.code_url or None,
                **of_workflow,
            )
    root = entity(
        "./",
        "Dataset",
        name=about.title,
        description=about.description,
        datePublished=date,
        license={"@id": license_},
        author=ids(creators),
        creator=ids(creators),
        version=about.version,
        keywords=", ".join(about.keywords),
        mainEntity={"@id": WORKFLOW},
        isBasedOn=ids(cited),
        hasPart=ids(parts),
        citation=ids(papers) or None,
        url=about.url or None,
        **of_root,
    )
    descriptor = entity(METADATA, "CreativeWork", about={"@id": "./"}, conformsTo=refer(*_PROFILES))
    terms = f"{about.license}, of the workflow and the results; its text is the file LICENSE. "
    terms += "The traces that the results come from have licences of their own."
    around = [
        *creators,
        entity(license_, "CreativeWork", name=about.license, description=terms),
        entity(
            _SNAKEMAKE,
            "ComputerLanguage",
            name="Snakemake",
            identifier={"@id": "https://doi.org/10.12688/f1000research.29032.2"},
            url={"@id": "https://snakemake.github.io"},
            version=snakemake_version,
        ),
    ]
    columns = {column["@id"]: column for file in files for column in _columns(file)}
    graph = [descriptor, root, *parts, *columns.values(), *around, *cited, *papers, *ran]
    return json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=1, ensure_ascii=False) + "\n"


def _file(file: Published) -> dict:
    is_code = PurePosixPath(file.path).suffix in (".py", ".smk", ".sh", ".lua")
    return entity(
        quote(file.path),
        ["File", "SoftwareSourceCode"] if is_code else "File",
        name=file.name,
        description=file.what or None,
        variableMeasured=ids(_columns(file)) or None,
        contentSize=str(len(file.content)),
        encodingFormat=file.media_type,
        sha256=file.sha256,
    )


def _columns(file: Published) -> list[dict]:
    """The columns of a table, those of one contract the same in every trace."""
    table = PurePosixPath(file.path).stem
    return [
        entity(f"#{table}-{name}", "PropertyValue", name=name, description=column.about, unitText=column.unit or None)
        for name, column in file.columns.items()
    ]


def _creator(creator: Creator, place: int) -> dict:
    at = f"https://orcid.org/{creator.orcid}" if creator.orcid else f"#creator-{place}"
    kind = "Person" if creator.person else "Organization"
    return entity(at, kind, name=creator.name, affiliation=creator.affiliation or None)


def _trace(name: str, entry: dict) -> dict:
    """The data a result was made from, which are not in the archive."""
    text = "Synthetic: no finding from it says anything about a real cluster. " if entry["synthetic"] else ""
    text += f"Source: {entry['source']}. " if entry.get("source") else ""
    text += f"Licence: {entry['licence']}." if entry.get("licence") else ""
    title = f"{name}: {entry.get('title', 'a trace')}"
    return entity(f"#trace-{name}", "CreativeWork", name=title, description=text.strip() or None)
