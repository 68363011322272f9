"""Add the workflow to the wheel as data of the package, in the folder where ttf.engine.checkout looks for it."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = (
    *("Snakefile", "workflow/main.smk", "workflow/Snakefile", "workflow/resources.yaml", "docs/metrics.md"),
    *("CITATION.cff", "LICENSE", "README.md", "environment.yml", "pyproject.toml", "docs/CHANGELOG.md"),
)
FOLDERS = (
    *("config", "profiles", "report", "workflow/samples"),
    *("workflow/report", "workflow/rules", "workflow/schemas"),
)


class WorkflowHook(BuildHookInterface):
    """Hatchling calls this before it builds a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files; an editable install finds them in the checkout."""
        if version == "editable":
            return
        root = Path(self.root)
        scripts = sorted(path.relative_to(root).as_posix() for path in root.glob("scripts/*.py"))
        build_data["force_include"] |= {name: f"ttf/checkout/{name}" for name in (*FILES, *FOLDERS, *scripts)}
