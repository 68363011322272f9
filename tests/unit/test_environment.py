"""environment.yml, pyproject.toml and the lock files name the same packages at the same versions."""

import json
import re
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from study.publication import SOURCES

ROOT = Path(__file__).parents[2]
# conda-forge's name where it differs; None: not needed in a conda environment, where Quarto brings Pandoc and Typst.
CONDA_NAMES = {
    "snakemake": "snakemake-minimal",
    "great-tables": "great_tables",
    "tzdata": "python-tzdata",
    "pypandoc-binary": None,
    "typst": None,
}


def pins(lock: str) -> dict[str, str]:
    found = re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", (ROOT / lock).read_text(), re.MULTILINE)
    assert len(found) == len(dict(found)), "a package is pinned to two versions: results would depend on the Python"
    return dict(found)


def hashes(lock: str) -> dict[str, list[str]]:
    """Package -> the SHA-256 of its files, sorted."""
    blocks = re.split(r"\n(?=[a-z0-9])", (ROOT / lock).read_text().strip())
    return {block.partition("==")[0]: sorted(re.findall(r"sha256:([0-9a-f]{64})", block)) for block in blocks}


def direct_dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [re.match(r"[a-z0-9-]+", line)[0] for line in project["dependencies"]]


def test_environment_yml_pins_what_the_lock_pins():
    conda = dict(
        line.split(" =") for line in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][2:]
    )
    locked = pins("requirements.lock")
    expected = {
        CONDA_NAMES.get(name, name): re.sub(r"\.post\d+$", "", locked[name])
        for name in direct_dependencies()
        if CONDA_NAMES.get(name, name)
    }
    assert conda == expected


def test_environment_yml_brings_quarto():
    assert "quarto =1.10" in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]


LOCKS = [
    "requirements",
    "requirements-test",
    "requirements-cluster",
    "requirements-cluster-test",
    "requirements-uv",
    "requirements-sbom",
]


@pytest.mark.parametrize("lock", [f"{name}.lock" for name in LOCKS])
def test_locks_hold_hashes_and_no_address(lock):
    text = (ROOT / lock).read_text()
    assert "://" not in text
    blocks = re.split(r"\n(?=[a-z0-9])", text.strip())
    assert all("--hash=sha256:" in block for block in blocks)


def test_test_lock_holds_the_whole_lock():
    tested, locked = pins("requirements-test.lock"), pins("requirements.lock")
    assert {name: tested.get(name) for name in locked} == locked


def test_the_bill_of_materials_is_the_lock():
    """Where it is not, `make lock` makes it anew."""
    text = (ROOT / "sbom.cdx.json").read_text()
    document = json.loads(text)
    components = {found["name"]: found for found in document["components"]}
    assert {name: found["version"] for name, found in components.items()} == pins("requirements.lock")
    assert {
        name: sorted(digest["content"] for files in found["externalReferences"] for digest in files["hashes"])
        for name, found in components.items()
    } == hashes("requirements.lock")
    [asked] = document["dependencies"]
    assert asked["dependsOn"] == sorted(components[name]["purl"] for name in direct_dependencies())
    assert not {"serialNumber", "timestamp"} & {*document, *document["metadata"]}
    assert text.count("://") == 1, "the address of the schema, and no other"
    assert "sbom.cdx.json" in SOURCES, "it goes into the archive"


def test_what_is_installed_is_what_the_lock_says():
    """In the environment of the tests: nothing missing, nothing at another version, nothing more but what installs."""
    lines = re.findall(r"^[a-z0-9-]+[^\\\n]*==[^\\\n]+", (ROOT / "requirements-test.lock").read_text(), re.MULTILINE)
    locked = [Requirement(line) for line in lines]
    assert len(locked) == len(pins("requirements-test.lock"))
    expected = {str(one.name): str(one.specifier)[2:] for one in locked if not one.marker or one.marker.evaluate()}
    installed = {
        canonicalize_name(found.metadata["Name"]): found.version
        for found in metadata.distributions(path=sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    }
    assert installed.pop("uv") == pins("requirements-uv.lock")["uv"]
    assert {
        name: version for name, version in installed.items() if name not in ("pip", "setuptools", "wheel")
    } == expected


@pytest.mark.parametrize("lock", ["requirements-cluster.lock", "requirements-cluster-test.lock"])
def test_a_job_on_a_cluster_finds_the_versions_of_the_lock(lock):
    on_cluster, locked = pins(lock), pins("requirements.lock")
    assert {name: on_cluster.get(name) for name in locked} == locked
    assert "snakemake-executor-plugin-slurm" in on_cluster
    assert "snakemake-executor-plugin-slurm" not in pins("requirements-test.lock"), "it slows every start"


@pytest.mark.parametrize("lock", ["requirements-kubernetes.lock", "requirements-kubernetes-test.lock"])
def test_a_pod_finds_the_versions_of_the_lock(lock):
    in_pod, locked = pins(lock), pins("requirements.lock")
    assert {name: in_pod.get(name) for name in locked} == locked
    assert {"snakemake-executor-plugin-kubernetes", "snakemake-storage-plugin-s3"} <= in_pod.keys()
