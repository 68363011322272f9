"""The recipe of an analysis in docs/CONTRIBUTING.md, as files."""

import re
from pathlib import Path

_TEXT = (Path(__file__).parents[2] / "docs/CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPE = _TEXT.partition("\n## An analysis\n")[2].partition("\n## ")[0]
_FILE = re.compile(r"^`(my/analyses/[\w./]+)`:.*?^```(?:python)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The configuration of the study, and a file with a published finding.
_STUDY, FINDINGS = re.findall(r"^```yaml\n((?:study|sources): .*?)^```$", _TEXT, re.DOTALL | re.MULTILINE)


def write_example(folder: Path) -> None:
    """Write the analysis and the configuration that the recipe shows into the folder."""
    for name, text in [*_FILE.findall(RECIPE), ("weekdays.yaml", _STUDY)]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
