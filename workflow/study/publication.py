"""What the archive takes from the checkout: the day of publication and the files of the workflow."""

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import yaml

# What it takes to run the study again.
SOURCES = (
    *("Snakefile", "Makefile", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "pyproject.toml"),
    *("environment.yml", "requirements.lock", "requirements-test.lock", "requirements-uv.lock"),
    *("sbom.cdx.json", "requirements-sbom.lock", "requirements-crate.lock"),
    *("requirements-cluster.lock", "requirements-cluster-test.lock"),
    *("requirements-kubernetes.lock", "requirements-kubernetes-test.lock"),
    *("workflow", "scripts", "config", "profiles", "report", "samples", "setup"),
)


def published_on(settings: Mapping, root: Path, environment: Mapping[str, str] = os.environ) -> str:
    """The day of publication, YYYY-MM-DD; nothing where none is known. Never today: the same study, the same archive.

    The setting `publish.date`, SOURCE_DATE_EPOCH, `date-released` of CITATION.cff, the day of the last commit.
    """
    if settings.get("date"):
        return settings["date"]
    if environment.get("SOURCE_DATE_EPOCH", "").isdecimal():
        return datetime.fromtimestamp(int(environment["SOURCE_DATE_EPOCH"]), UTC).date().isoformat()
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    return str(cited.get("date-released") or _day_of_commit(root))


def _day_of_commit(root: Path) -> str:
    if not (root / ".git").exists():  # a folder above the checkout may be another repository's
        return ""
    asked = ["git", "-C", str(root), "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%d"]
    try:
        done = subprocess.run(
            asked, capture_output=True, text=True, check=False, env={**os.environ, "TZ": "UTC", "LC_ALL": "C"}
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def sources_of_study(root: Path) -> list[Path]:
    """The files of the workflow, its configuration and its environment, those that are there, in order.

    Of config/ those that came with it: what a person put there may name folders, and config.yaml says the rest.
    """
    found = []
    for name in SOURCES:
        path = root / name
        found += [path] if path.is_file() else sorted(path.rglob("*"))
    left, listed = {"__pycache__", ".snakemake"}, root / "workflow" / "files.txt"
    came = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []

    def is_taken(path: Path) -> bool:
        below = path.relative_to(root)
        return not left & set(below.parts) and (below.parts[0] != "config" or not came or below.as_posix() in came)

    return [path for path in found if path.is_file() and is_taken(path)]


# Keys of the configuration and of a trace that say where files are: folders may be called after somebody.
PATHS = ("analyses", "claims", "outage_causes", "taxonomy")
PATHS_OF_TRACES = ("files", "folder", "health_events", "log_tails", "loss_log", "node_events", "schema")


def without_paths(config: Mapping) -> dict:
    """The configuration as it is published where names are not: without the files and folders of the study."""
    entries = {
        name: {key: value for key, value in entry.items() if key not in PATHS_OF_TRACES}
        for name, entry in config["registry"].items()
    }
    return {key: value for key, value in config.items() if key not in PATHS} | {"registry": entries}
