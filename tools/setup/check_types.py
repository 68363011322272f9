"""Check types with mypy, and compare the findings of each folder with the number that pyproject.toml allows.

Folders not listed in [tool.type_findings] must have none. A folder with fewer findings than allowed fails too, so that
its number is lowered and never rises again.
"""

import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
FINDING = re.compile(r"(?P<path>[^:]+\.py):\d+: error: ")


def findings_by_folder(lines: list[str], folders: list[str]) -> dict[str, list[str]]:
    """Group findings by the longest of `folders` that contains their file, others by the file itself."""
    findings = defaultdict(list)
    for line in lines:
        if match := FINDING.match(line):
            parents = [folder for folder in folders if match["path"].startswith(f"{folder}/")]
            findings[max(parents, key=len, default=match["path"])].append(line)
    return findings


def compare(findings: dict[str, list[str]], allowed: dict[str, int]) -> list[str]:
    """Return what to say of each folder whose number of findings is not the one allowed."""
    messages = []
    for folder in sorted({*findings, *allowed}):
        lines, limit = findings.get(folder, []), allowed.get(folder, 0)
        if len(lines) > limit:
            messages += [*lines, f"{folder}: {len(lines)} findings, {limit} allowed"]
        elif len(lines) < limit:
            messages.append(f"{folder}: {len(lines)} findings, {limit} allowed: lower the number in pyproject.toml")
    return messages


def main() -> None:
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["type_findings"]
    mypy = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if mypy.returncode > 1 or mypy.stderr:
        sys.exit(mypy.stdout + mypy.stderr)
    if messages := compare(findings_by_folder(mypy.stdout.splitlines(), [*allowed]), allowed):
        sys.exit("\n".join(messages))


if __name__ == "__main__":
    main()
