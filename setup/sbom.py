"""Write the packages of a lock file as a software bill of materials, CycloneDX 1.6, with versions and SHA-256.

usage: sbom.py PYPROJECT LOCK OUTPUT, with the packages of requirements-sbom.lock
It has no time, random number or address, so the same lock gives the same bytes.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

_PACKAGE = re.compile(
    r"^([a-z0-9-]+)(?:\[[^]]*\])?==([^ ;\\]+)(?: ; ([^\\\n]+?))? \\\n((?:    --hash=.*\n)+)", re.MULTILINE
)
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")


def component(name: str, version: str, marker: str, hashes: list[str]) -> Component:
    """Describe a package with the SHA-256 of each installable file; with a marker it is optional."""
    purl = PackageURL("pypi", None, name, version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(str(purl)),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in hashes],
    )
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        purl=purl,
        bom_ref=str(purl),
        scope=ComponentScope.OPTIONAL if marker else ComponentScope.REQUIRED,
        external_references=[files],
    )


def sbom(pyproject: str, lock: str) -> str:
    """Return the bill of materials from the texts of the two files."""
    project = tomllib.loads(pyproject)["project"]
    packages = [
        component(name, version, marker, _SHA256.findall(hashes))
        for name, version, marker, hashes in _PACKAGE.findall(lock)
    ]
    assert len(packages) == len(re.findall(r"^\S+==", lock, re.MULTILINE)), "a line of the lock has another form"
    direct_dependencies = {re.match(r"[\w.-]+", line)[0].lower() for line in project["dependencies"]}
    root = Component(
        type=ComponentType.APPLICATION,
        name=project["name"],
        version=project["version"],
        bom_ref=project["name"],
        licenses=[DisjunctiveLicense(id=project["license"])],
    )
    bom = Bom(components=packages)
    bom.metadata.component = root
    bom.metadata.tools.components.clear()
    bom.serial_number = bom.metadata.timestamp = None
    bom.register_dependency(root, [package for package in packages if package.name in direct_dependencies])
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    # The lock does not record dependencies of packages; an empty entry would state that there are none.
    document["dependencies"] = [entry for entry in document["dependencies"] if entry.get("dependsOn")]
    text = json.dumps(document, indent=1)
    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"no valid CycloneDX: {problem}")
    return text + "\n"


if __name__ == "__main__":
    project_file, lock_file, output = map(Path, sys.argv[1:])
    document = sbom(project_file.read_text(encoding="utf-8"), lock_file.read_text(encoding="utf-8"))
    output.write_text(document, encoding="utf-8")
