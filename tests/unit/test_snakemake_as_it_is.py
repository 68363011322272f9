"""Snakemake is unchanged: no code replaces its parts, uses its private names, or substitutes modules."""

import re

from study_runs import ROOT

FILES = sorted(
    path
    for folder in ("workflow", "scripts", "profiles")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".smk", ".yaml")
)
_IMPORTS = re.compile(r"^\s*from snakemake\S* import (?:\(([^)]*)\)|(.*))|^\s*import (snakemake\S*(?: as \w+)?)", re.M)


def find_misuses(text: str) -> list[str]:
    """List the matches of text that replace or bypass parts of Snakemake."""
    lists = [",".join(parts) for parts in _IMPORTS.findall(text)]
    imported = {part.split()[-1].split(".")[0] for names in lists for part in names.split(",") if part.strip()}
    # `workflow` is Snakemake's own object in each file of rules.
    names = "|".join(sorted({"workflow"} | imported))
    chain = rf"\b(?:{names})(?:\.\w+|\[[^\]\n]*\])+"
    private = sorted(name for name in imported if name.startswith("_") and not name.startswith("__"))
    return private + [
        match[0]
        for pattern in (
            rf"{chain} *[-+|]?=(?!=)",
            rf"\bsetattr\((?:{names})\b",
            rf"\b(?:{names})(?:\.\w+)*\._[a-z]\w*",
            r"sys\.modules(?:\[|\.(?!get\b)\w+)",
            r"nolock|__use_yte__|__definitions__",
        )
        for match in re.finditer(pattern, text)
    ]


def test_nothing_of_snakemake_is_replaced():
    assert len(FILES) > 300
    for path in FILES:
        assert find_misuses(path.read_text(encoding="utf-8")) == [], path


def test_misuses_are_detected():
    for text in (
        "from snakemake.script import PythonScript\nPythonScript.execute_script = run",
        "from snakemake import (\n    jobs as them,\n    dag,\n)\nthem.Job.outputs = 3",
        "import snakemake.dag as graph\nsetattr(graph, 'x', 1)",
        "from snakemake.logging import logger\nlogger._handlers",
        "from snakemake.utils import _private",
        "sys.modules['pandas'] = None",
        "sys.modules.setdefault('numpy', None)",
    ):
        assert find_misuses(text), text
