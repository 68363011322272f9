"""Publication metadata from the registry, CITATION.cff and the section `publish` of the configuration."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from ttf.engine.errors import StudyError

_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")


@dataclass(frozen=True)
class Creator:
    """A person ("Family, Given") or an organisation, with an affiliation and an ORCID if known."""

    name: str
    person: bool = True
    affiliation: str = ""
    orcid: str = ""


@dataclass(frozen=True)
class Publication:
    """Metadata of site and archive. traces: name -> registry entry, with `synthetic`.

    workflow, code_url: title of the workflow and address of its code; url: address of the results. own_title,
    authors: title and creators as configured, else empty. year: of publication, if known; doi: of the results.
    """

    title: str
    description: str
    creators: list[Creator]
    license: str
    version: str
    keywords: list[str]
    url: str
    workflow: str
    code_url: str
    traces: dict[str, dict] = field(default_factory=dict)
    own_title: str = ""
    authors: list[Creator] = field(default_factory=list)
    year: str = ""
    doi: str = ""

    @property
    def has_pseudonyms(self) -> bool:
        """Whether any trace is published with pseudonyms of users, accounts and nodes."""
        return any(entry.get("pseudonyms") for entry in self.traces.values())


def describe(citation: str, settings: Mapping, traces: Mapping[str, Mapping]) -> Publication:
    """Build the metadata from the settings of `publish`, else from the text of CITATION.cff."""
    metadata = yaml.safe_load(citation)
    creators = [Creator(**{"person": "," in entry["name"], **entry}) for entry in settings.get("creators") or ()]
    names = ", ".join(f"{name} (synthetic)" if entry["synthetic"] else name for name, entry in traces.items())
    return Publication(
        title=settings.get("title") or f"{metadata['title']}. Results: {names}",
        description=settings.get("description") or " ".join(metadata["abstract"].split()),
        creators=creators or [_make_creator(author) for author in metadata["authors"]],
        license=settings.get("license") or metadata["license"],
        version=str(metadata["version"]),
        keywords=list(settings.get("keywords") or metadata.get("keywords", [])),
        url=settings.get("url") or metadata.get("url", ""),
        workflow=metadata["title"],
        code_url=metadata.get("repository-code", ""),
        traces={name: dict(entry) for name, entry in traces.items()},
        own_title=settings.get("title", ""),
        authors=creators,
        year=settings.get("year") or settings.get("date", "")[:4],
        doi=settings.get("doi", ""),
    )


def name_code(citation: str) -> str:
    """Return a sentence with the address of the code, from the text of CITATION.cff; "" if it has none."""
    metadata = yaml.safe_load(citation)
    address = metadata.get("repository-code")
    return f"Made with Time to Failure {metadata['version']}, {address}." if address else ""


def check_date(date: str) -> str:
    """Return the publication date if it is valid; never the current date, so a study always gives the same archive."""
    if not _DATE.fullmatch(date):
        raise StudyError(
            "the archive needs a publication date, and neither the configuration, SOURCE_DATE_EPOCH, CITATION.cff "
            "(date-released) nor a git commit gives one.\nWrite into your configuration   publish: {date: '2025-01-31'}"
        )
    return date


def _make_creator(author: Mapping) -> Creator:
    orcid = str(author.get("orcid", "")).rsplit("/", 1)[-1]
    affiliation = author.get("affiliation", "")
    if "name" in author:
        return Creator(author["name"], person=False, affiliation=affiliation, orcid=orcid)
    family = " ".join(filter(None, (author.get("name-particle"), author.get("family-names"))))
    return Creator(", ".join(filter(None, (family, author.get("given-names")))), True, affiliation, orcid)
