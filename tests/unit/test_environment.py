"""environment.yml, pyproject.toml and the lock files name the same packages at the same versions."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
# Names on conda-forge that differ; there `typst` is the program.
CONDA_NAMES = {
    "great-tables": "great_tables",
    "pypandoc-binary": "pypandoc",
    "snakemake": "snakemake-minimal",
    "typst": "typst-py",
    "tzdata": "python-tzdata",
}


def pins(lock: str) -> dict[str, str]:
    pairs = re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", (ROOT / lock).read_text(), re.MULTILINE)
    assert len(pairs) == len(dict(pairs)), "a package is pinned to two versions: results would depend on the Python"
    return dict(pairs)


def hashes(lock: str) -> dict[str, list[str]]:
    """Package -> the SHA-256 of its files, sorted."""
    blocks = re.split(r"\n(?=[a-z0-9])", (ROOT / lock).read_text().strip())
    return {block.partition("==")[0]: sorted(re.findall(r"sha256:([0-9a-f]{64})", block)) for block in blocks}


def names_in(requirements: list[str]) -> list[str]:
    return [re.match(r"[a-z0-9-]+", line)[0] for line in requirements]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def direct_dependencies() -> list[str]:
    extras = project()["optional-dependencies"]
    return names_in([*project()["dependencies"], *extras["pdf"]])


def test_environment_yml_pins_what_the_lock_pins():
    conda = dict(
        line.split(" =") for line in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][2:]
    )
    locked = pins("locks/study.lock")
    expected = {CONDA_NAMES.get(name, name): re.sub(r"\.post\d+$", "", locked[name]) for name in direct_dependencies()}
    assert conda == expected


def imports_of(file: Path) -> tuple[set[str], set[str]]:
    """Return the third-party packages that a module imports, and the optional ones it probes with find_spec."""
    imported, optional = set(), set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.Import(names=names):
                imported |= {name.name.partition(".")[0] for name in names}
            case ast.ImportFrom(module=str(module), level=0):
                imported.add(module.partition(".")[0])
            case ast.Call(func=ast.Name(id="find_spec"), args=[ast.Constant(value=str(module))]):
                optional.add(module)
    project_modules = {path.stem for folder in ("scripts", "workflow/plugins") for path in (ROOT / folder).iterdir()}
    return imported - sys.stdlib_module_names - project_modules - optional, optional


def test_every_import_is_a_dependency_of_each_environment():
    """The tests above assert that the lock and environment.yml contain each dependency."""
    extras = [name for requirements in project()["optional-dependencies"].values() for name in names_in(requirements)]
    suppliers = metadata.packages_distributions()
    imported, missing = set(), []
    for file in [*(ROOT / "scripts").rglob("*.py"), *(ROOT / "workflow").rglob("*.py")]:
        for modules, declared in zip(imports_of(file), (direct_dependencies(), extras), strict=True):
            imported |= modules
            for module in modules:
                if not {canonicalize_name(name) for name in suppliers.get(module, ())}.intersection(declared):
                    missing.append(f"{file.relative_to(ROOT)} imports {module}")
    assert missing == []
    assert {"numpy", "polars", "pypandoc", "typst", "yaml"} <= imported


LOCKS = sorted((ROOT / "locks").iterdir())


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_locks_hold_hashes_and_no_address(lock):
    text = lock.read_text()
    assert "://" not in text
    blocks = re.split(r"\n(?=[a-z0-9])", text.strip())
    assert all("--hash=sha256:" in block for block in blocks)


def test_the_environment_installs_without_a_home_folder(tmp_path):
    """uv stops if it cannot write its cache. Here pip and uv find all packages installed, and use no network."""
    environment, packages = tmp_path / "environment", Path(sysconfig.get_path("purelib"))
    venv.create(environment)
    (environment / "bin/uv").symlink_to(shutil.which("uv", path=sysconfig.get_path("scripts")))
    [site_packages] = environment.glob("lib/*/site-packages")
    (site_packages / "tests.pth").write_text(f"{packages}\n")
    (tmp_path / "empty.lock").write_text("# no package\n")
    command = ["bash", "tools/setup/install.sh", sys.executable, str(environment), str(tmp_path / "empty.lock")]
    variables = {"PATH": os.environ["PATH"], "HOME": "/proc/none"}
    process = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert (environment / "empty.lock").read_text() == "# no package\n"


@pytest.mark.parametrize("kind", ["test", "cluster"])
def test_other_environments_have_the_versions_of_the_lock(kind):
    other_pins, locked = pins(f"locks/{kind}.lock"), pins("locks/study.lock")
    assert {name: other_pins.get(name) for name in locked} == locked
    # The plugin slows every start.
    assert ("snakemake-executor-plugin-slurm" in other_pins) == (kind == "cluster")


def test_a_pod_finds_the_versions_of_the_lock():
    pod_pins, locked = pins("locks/kubernetes.lock"), pins("locks/study.lock")
    assert {name: pod_pins.get(name) for name in locked} == locked
    assert {"snakemake-executor-plugin-kubernetes", "snakemake-storage-plugin-s3"} <= pod_pins.keys()
