"""Each number that a text of the page names in brackets is declared by an analysis or a stage."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from ttf.analyses import module_name
from ttf.analyses.catalogue import find_analysis_folders, load_analyses
from ttf.page.data_numbers import NUMBERS as STAGE_NUMBERS

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"report": "**/*.qmd", "scripts/ttf/analyses": "**/*.qmd", "scripts/ttf/display": "*.py"}
FOLDERS |= {"scripts/ttf/page/brief": "*.py"}
TEXTS = [file for folder, pattern in FOLDERS.items() for file in sorted((ROOT / folder).glob(pattern))]
TEXTS += sorted((ROOT / "scripts/ttf/analyses").rglob("page.py"))
# Keys without a part that only a trace decides.
NAMED = re.compile(r"\[([A-Za-z]\w*(?:\.[\w-]+)+)(?::\w+)?(?: [^\[\]]+)?\]")
CELL = re.compile(r"\{[^{}]*\}")


@cache
def declared_keys() -> re.Pattern:
    """Return a pattern of all keys of numbers; a column in braces stands for any word."""
    declared = list(STAGE_NUMBERS)
    for name in load_analyses():
        if (find_analysis_folders()[name] / "numbers.py").exists():
            declared += import_module(f"{module_name(name)}.numbers").NUMBERS
    keys = set()
    for cells in declared:
        for key in [f"{cells.key}.{end}" for end in cells.ends] or [cells.key]:
            keys |= {f"{key}.{name}" if name else key for name in cells.columns}
    return re.compile("|".join(".+".join(map(re.escape, CELL.split(key))) for key in sorted(keys)))


def texts(file: Path) -> Iterator[str]:
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".qmd":
        yield source
        return
    tree = ast.parse(source)
    expressions = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    for node in ast.walk(tree):
        # Docstrings have examples.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in expressions:
            yield node.value


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_texts_name_declared_numbers(file):
    keys = {key for text in texts(file) for key in NAMED.findall(text)}
    declared = declared_keys()
    assert not [key for key in sorted(keys) if not declared.fullmatch(key)]
