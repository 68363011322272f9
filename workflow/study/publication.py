"""What publications take from the checkout: the date of publication and the files of the workflow."""

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import yaml

# Everything that a rerun of the study needs.
SOURCES = (
    *("Snakefile", "Makefile", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "pyproject.toml"),
    *("environment.yml", "requirements.lock", "requirements-test.lock", "requirements-uv.lock"),
    *("sbom.cdx.json", "requirements-sbom.lock", "requirements-crate.lock"),
    *("requirements-cluster.lock", "requirements-cluster-test.lock"),
    *("requirements-kubernetes.lock", "requirements-kubernetes-test.lock"),
    *("workflow", "scripts", "config", "profiles", "report", "samples", "setup"),
)


def find_publication_date(settings: Mapping, root: Path, environment: Mapping[str, str] = os.environ) -> str:
    """Return the date of publication, YYYY-MM-DD; empty if unknown. Never today, so that the archive is reproducible.

    The first of: the setting `publish.date`, SOURCE_DATE_EPOCH, `date-released` of CITATION.cff, the last commit.
    """
    if settings.get("date"):
        return settings["date"]
    if environment.get("SOURCE_DATE_EPOCH", "").isdecimal():
        return datetime.fromtimestamp(int(environment["SOURCE_DATE_EPOCH"]), UTC).date().isoformat()
    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    return str(cited.get("date-released") or _read_commit_date(root))


def _read_commit_date(root: Path) -> str:
    if not (root / ".git").exists():  # a parent folder may belong to another repository
        return ""
    command = ["git", "-C", str(root), "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%d"]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "TZ": "UTC", "LC_ALL": "C"}
        )
    except FileNotFoundError:
        return ""
    return result.stdout.strip()


def list_source_files(root: Path) -> list[Path]:
    """Return the existing files of the workflow, its configuration and its environment, in order.

    Of config/ only shipped files: the user's files may name folders, and config.yaml has their content.
    """
    paths = []
    for name in SOURCES:
        path = root / name
        paths += [path] if path.is_file() else sorted(path.rglob("*"))
    ignored_names, list_file = {"__pycache__", ".snakemake"}, root / "workflow" / "files.txt"
    shipped_files = list_file.read_text(encoding="utf-8").splitlines() if list_file.is_file() else []

    def is_included(path: Path) -> bool:
        relative_path = path.relative_to(root)
        return not ignored_names & set(relative_path.parts) and (
            relative_path.parts[0] != "config" or not shipped_files or relative_path.as_posix() in shipped_files
        )

    return [path for path in paths if path.is_file() and is_included(path)]


# Keys of the configuration and of a trace with paths, which may contain the name of a person.
PATH_KEYS = ("analyses", "claims", "node_log_rules", "outage_causes", "taxonomy")
TRACE_PATH_KEYS = ("files", "folder", "health_events", "log_tails", "loss_log", "node_events", "node_logs", "schema")


def remove_paths(config: Mapping) -> dict:
    """Return the configuration without its files and folders, for publication with pseudonyms."""
    entries = {
        name: {key: value for key, value in entry.items() if key not in TRACE_PATH_KEYS}
        for name, entry in config["registry"].items()
    }
    return {key: value for key, value in config.items() if key not in PATH_KEYS} | {"registry": entries}
