"""What is published, in the words of the registry, CITATION.cff and the section `publish` of the configuration."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import yaml

from ttf.engine.errors import StudyError

_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>]+")
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True)
class Creator:
    """A person ("Family, Given") or an organisation, with an affiliation and an ORCID if known."""

    name: str
    person: bool = True
    affiliation: str = ""
    orcid: str = ""


@dataclass(frozen=True)
class Publication:
    """What site and archive say of themselves. `traces`: name -> what the registry says of it, and `synthetic`.

    workflow, code_url: the title of the workflow and where its code is; url: where the results are.
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

    @property
    def pseudonyms(self) -> bool:
        """Whether users, accounts and nodes of any trace have other names in what is published."""
        return any(entry.get("pseudonyms") for entry in self.traces.values())

    def sources(self) -> list[str]:
        """Addresses of the data, each once."""
        return _found(_ADDRESS, self.traces.values(), "source")

    def dois(self) -> list[str]:
        """DOIs of what the registry asks to cite, each once."""
        return _found(_DOI, self.traces.values(), "citation")


def describe(citation: str, settings: Mapping, traces: Mapping[str, Mapping]) -> Publication:
    """From the text of CITATION.cff; the settings of `publish` come first."""
    cited = yaml.safe_load(citation)
    given = settings.get("creators") or []
    creators = [Creator(**{"person": "," in entry["name"], **entry}) for entry in given]
    names = ", ".join(f"{name} (synthetic)" if about["synthetic"] else name for name, about in traces.items())
    return Publication(
        title=settings.get("title") or f"{cited['title']}. Results: {names}",
        description=settings.get("description") or " ".join(cited["abstract"].split()),
        creators=creators or [_creator(author) for author in cited["authors"]],
        license=settings.get("license") or cited["license"],
        version=str(cited["version"]),
        keywords=list(settings.get("keywords") or cited.get("keywords", [])),
        url=settings.get("url") or cited.get("url", ""),
        workflow=cited["title"],
        code_url=cited.get("repository-code", ""),
        traces={name: dict(about) for name, about in traces.items()},
    )


def checked_date(date: str) -> str:
    """The day of publication. It is asked for, never taken from a clock: the same study gives the same archive."""
    if not _DATE.fullmatch(date):
        raise StudyError(
            "the archive needs the day it is published, and neither the configuration, SOURCE_DATE_EPOCH, CITATION.cff "
            "(date-released) nor a git commit gives one.\nWrite into your configuration   publish: {date: '2025-01-31'}"
        )
    return date


def _creator(author: Mapping) -> Creator:
    orcid = str(author.get("orcid", "")).rsplit("/", 1)[-1]
    affiliation = author.get("affiliation", "")
    if "name" in author:
        return Creator(author["name"], person=False, affiliation=affiliation, orcid=orcid)
    family = " ".join(filter(None, (author.get("name-particle"), author.get("family-names"))))
    return Creator(", ".join(filter(None, (family, author.get("given-names")))), True, affiliation, orcid)


def _found(pattern: re.Pattern, entries: Iterable[Mapping], key: str) -> list[str]:
    """What the pattern finds in these texts, without the punctuation after it; no address with a blank to fill in."""
    found = [text.rstrip(".,;:)\"'") for about in entries for text in pattern.findall(about.get(key, ""))]
    return list(dict.fromkeys(text for text in found if "<" not in text))
