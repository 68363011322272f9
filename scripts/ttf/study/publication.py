"""What publications take from the checkout: the date of publication and the files of the workflow."""

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from ttf.engine.checkout import find_workflow_file, list_workflow_files
from ttf.study.configuration.yaml_files import load_yaml

# Everything that a rerun of the study needs.
SOURCES = (
    *("Snakefile", "Makefile", "README.md", "docs/CHANGELOG.md", "CITATION.cff", "LICENSE", "pyproject.toml"),
    *("environment.yml", "locks", "sbom.cdx.json"),
    *("workflow", "scripts", "profiles", "report", "tools/setup", "tools/workflow_in_wheel.py"),
    # The user's own files in config/ may name folders; config.yaml of the study has their content.
    *("config/README.md", "config/claims.yaml", "config/column_names.yaml", "config/config.yaml", "config/mappings"),
    *("config/node_log_rules.yaml", "config/outage_causes.yaml", "config/taxonomy.yaml"),
    "config/training_log_profiles.yaml",
    *("config/thresholds.yaml", "config/traces.yaml"),
)


def find_publication_date(settings: Mapping, root: Path, environment: Mapping[str, str] = os.environ) -> str:
    """Return the date of publication, YYYY-MM-DD; empty if unknown. Never today, so that the archive is reproducible.

    The first of: the setting `publish.date`, SOURCE_DATE_EPOCH, `date-released` of CITATION.cff, the last commit.
    """
    if settings.get("date"):
        return settings["date"]
    if environment.get("SOURCE_DATE_EPOCH", "").isdecimal():
        return datetime.fromtimestamp(int(environment["SOURCE_DATE_EPOCH"]), UTC).date().isoformat()
    cited = load_yaml(root / "CITATION.cff")
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


def list_source_files() -> list[Path]:
    """Return the existing files of the workflow, its configuration and its environment, in order of their names."""
    return [find_workflow_file(name) for name in list_workflow_files(SOURCES)]


# Keys of the configuration and of a trace with paths, which may contain the name of a person.
PATH_KEYS = ("analyses", "claims", "node_log_rules", "outage_causes", "taxonomy", "training_log_profiles")
TRACE_PATH_KEYS = (
    *("files", "folder", "health_events", "log_tails", "loss_log", "node_events", "node_logs", "schema"),
    *("training_logs", "units"),
)


def remove_paths(config: Mapping) -> dict:
    """Return the configuration without its files and folders, for publication with pseudonyms."""
    entries = {
        name: {key: value for key, value in entry.items() if key not in TRACE_PATH_KEYS}
        for name, entry in config["registry"].items()
    }
    return {key: value for key, value in config.items() if key not in PATH_KEYS} | {"registry": entries}
