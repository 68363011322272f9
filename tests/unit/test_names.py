"""Names are nouns of the field for data and verbs for functions: no preposition, pronoun or bare participle is one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from words_instead import NO_NAMES

ROOT = Path(__file__).parents[2]
FOLDERS = ("scripts", "workflow", "docs", "bench", "setup", "tests")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def defined_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each function, class, parameter and variable that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def is_refused(name: str) -> bool:
    name = name.strip("_")
    return name in NO_NAMES or name.startswith("of_")


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_name_is_a_preposition_or_a_pronoun(folder):
    refused = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in FILES
        if path.is_relative_to(ROOT / folder)
        for line, name in defined_names(ast.parse(path.read_bytes()))
        if is_refused(name)
    ]
    assert not refused


def test_such_names_are_seen():
    code = "def of_jobs(known, *, about=1):\n    for place, rows in []:\n        found = [it for it in rows]"
    names = [name for _, name in defined_names(ast.parse(code))]
    assert [name for name in names if is_refused(name)] == ["of_jobs", "known", "about", "place", "found", "it"]
