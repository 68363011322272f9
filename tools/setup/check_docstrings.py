"""Check that each `name: text` of the package's docstrings names something that exists.

usage: check_docstrings.py   (make lint)

A name of a class is one of its fields, attributes or methods, or an argument of these. A name of a function is one of
its arguments, a name or a text in its module, such as a column of the table that it returns, or a declared column.
"""

import ast
import gc
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


def list_columns(nodes: list[ast.AST]) -> set[str]:
    """Return the columns of the tables that a module declares."""
    calls = [node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") in DECLARE]
    return {keyword.arg for call in calls for keyword in call.keywords if keyword.arg}


def list_members(node: ast.ClassDef) -> set[str]:
    """Return the fields, attributes and methods of a class, and the arguments of its methods."""
    names = {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
    names |= {part.name for part in node.body if isinstance(part, FUNCTIONS)}
    names |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    return names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def list_words(nodes: list[ast.AST]) -> set[str]:
    """Return the names in the code of a module, and its texts."""
    words = (getattr(node, key, None) for node in nodes for key in ("id", "attr", "arg", "name", "value"))
    return {word for word in words if isinstance(word, str)}


def find_problems(nodes: list[ast.AST], columns: set[str]) -> Iterator[str]:
    """Yield a line number and a message for each documented name that does not exist, or says itself again."""
    words = list_words(nodes) | columns
    for node in nodes:
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)) and (text := ast.get_docstring(node)):
            existing = (list_members(node) if isinstance(node, ast.ClassDef) else words) | {"default"}
            documented = {name.lstrip("* ") for names in DOCUMENTED.findall(text) for name in names.split(",")}
            yield from (f"{node.lineno}: {node.name} has no {name}" for name in sorted(documented - existing))
            yield from (f"{node.lineno}: {name} explains itself by its name" for name in REPEATED.findall(text))


if __name__ == "__main__":
    gc.disable()  # no tree is garbage before the end, and to look for some takes half of the time
    files = sorted(PACKAGE.rglob("*.py"))
    modules = {file: [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))] for file in files}
    declared = set().union(*map(list_columns, modules.values()))
    problems = [f"{file}:{text}" for file, nodes in modules.items() for text in find_problems(nodes, declared)]
    sys.exit("\n".join(problems) or None)
