"""Check that each `name: text` of the package's docstrings names something that exists.

usage: check_docstrings.py   (make lint)

A name of a class is one of its fields, attributes or methods, or an argument of these. A name of a function is one of
its arguments, a name or a text in its module, such as a column of the table that it returns, or a declared column.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "scripts" / "ttf"
# At the start of a sentence or a line.
DOCUMENTED = re.compile(r"(?:^|[.;:] |\n)[ ]*((?:\*{0,2}[a-z_]\w*, )*\*{0,2}[a-z_]\w*) ?: (?=\S)")
REPEATED = re.compile(r"\b([a-z]\w+): \1(?:[.;] |[.;]?$)")
DECLARE = {"table", "parquet"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def list_columns(tree: ast.Module) -> set[str]:
    """Return the columns of the tables that a module declares."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") in DECLARE]
    return {keyword.arg for call in calls for keyword in call.keywords if keyword.arg}


def list_members(node: ast.ClassDef) -> set[str]:
    """Return the fields, attributes and methods of a class, and the arguments of its methods."""
    names = {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
    names |= {part.name for part in node.body if isinstance(part, FUNCTIONS)}
    names |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    return names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def list_words(tree: ast.Module) -> set[str]:
    """Return the names in the code of a module, and its texts."""
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = (getattr(node, key, None) for node in ast.walk(tree) for key in ("id", "attr", "arg", "name"))
    return words | {name for name in names if isinstance(name, str)}


def find_problems(tree: ast.Module, columns: set[str]) -> Iterator[str]:
    """Yield a line number and a message for each documented name that does not exist, or says itself again."""
    words = list_words(tree) | columns
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)) and (text := ast.get_docstring(node)):
            existing = (list_members(node) if isinstance(node, ast.ClassDef) else words) | {"default"}
            documented = {name.lstrip("* ") for names in DOCUMENTED.findall(text) for name in names.split(",")}
            yield from (f"{node.lineno}: {node.name} has no {name}" for name in sorted(documented - existing))
            yield from (f"{node.lineno}: {name} explains itself by its name" for name in REPEATED.findall(text))


if __name__ == "__main__":
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py"))}
    declared = set().union(*map(list_columns, trees.values()))
    problems = [f"{file}:{text}" for file, tree in trees.items() for text in find_problems(tree, declared)]
    sys.exit("\n".join(problems) or None)
