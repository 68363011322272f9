"""Pages, tables, charts, messages and docs use the terms of the field."""

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import yaml
from words_instead import find_private_words

ROOT = Path(__file__).parents[2]
# Not checked: the changelog, and files made from the contracts, which are checked in the code.
NOT_CHECKED = ("CHANGELOG.md", "tables.md", "metrics.md")
PROSE = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "config/*.md", "report/**/*.qmd", "scripts/ttf/analyses/**/*.qmd")
    for path in ROOT.glob(pattern)
    if path.name not in NOT_CHECKED
)
CODE = sorted(path for folder in ("scripts", "workflow") for path in (ROOT / folder).rglob("*.py"))
# Lists of the names of columns.
CODE = [path for path in CODE if path.name != "numbers.py"]
LISTS = sorted(chain((ROOT / "config").glob("*.yaml"), (ROOT / "workflow/schemas").glob("*.yaml")))
RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))
PAGES = sorted(path for path in (ROOT / "report").rglob("*") if path.suffix in (".html", ".js", ".typ"))
DATA_KEYS = ("where", "of", "mapping", "outcomes", "pattern")


def extract_prose(text: str) -> str:
    """Return Markdown without its code, which holds names of tables and keys."""
    text = re.sub(r"^```(?!$).*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"<%.*?%>|<<.*?>>|`[^`\n]*`|\]\([^)]*\)|\{#[^}]*\}|@[\w-]+", "", text, flags=re.DOTALL)


def extract_texts(code: str) -> Iterator[str]:
    """Yield the strings of code except docstrings; an expression in an f-string becomes 0."""
    tree = ast.parse(code)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (docs | parts):
            yield node.value


def extract_values(node: object) -> Iterator[str]:
    """Yield the texts of a YAML document, except words of the data."""
    if isinstance(node, dict):
        yield from chain.from_iterable(extract_values(value) for key, value in node.items() if key not in DATA_KEYS)
    elif isinstance(node, list):
        yield from chain.from_iterable(map(extract_values, node))
    elif isinstance(node, str):
        yield node


def list_slips(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".md", ".qmd"):
        return find_private_words(extract_prose(text))
    if path.suffix in (".html", ".typ"):
        return find_private_words(
            re.sub(r"<!--.*?-->|<[^>]*>|\{[{%#].*?[%}#]\}|^\s*//.*?$", " ", text, flags=re.DOTALL | re.MULTILINE)
        )
    if path.suffix == ".js":
        texts = [re.sub(r"\$\{.*?\}", "0", string) for string in re.findall(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`", text)]
    elif path.suffix == ".yaml":
        texts = extract_values(yaml.safe_load(text))
    elif path.suffix == ".smk":
        texts = re.findall(r'"""(.*?)"""', text, re.DOTALL)
    else:
        texts = extract_texts(text)
    return [slip for string in texts if " " in string or string[:1].isupper() for slip in find_private_words(string)]


@pytest.mark.parametrize("files", [PROSE, CODE, LISTS, RULES, PAGES], ids=["prose", "code", "lists", "rules", "pages"])
def test_texts_use_the_terms_of_the_field(files):
    assert files
    assert {str(path.relative_to(ROOT)): slips for path in files if (slips := list_slips(path))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "Failures laid to infrastructure.",
        "The effective training time is 82%.",
        "12 rows were put aside",
        "a share of 22.5 % failed",
        "with its 95% interval",
        "3 Lives at risk",
    ],
)
def test_a_wrong_term_is_found(text):
    assert find_private_words(text)


@pytest.mark.parametrize(
    "text",
    [
        "effective training time ratio",
        "95% CI 2.1–3.4%",
        "durations.parquet",
        "%Y-%m-%d %H",
        "requested durations_infra",
    ],
)
def test_an_allowed_term_is_not_found(text):
    assert not find_private_words(text)


def test_texts_of_code_exclude_docstrings():
    code = '"""a lemon"""\ndef f(x):\n    """lives on"""\n    return f"{x} % of them", "by proxy", x["lives"]\n'
    assert list(extract_texts(code)) == ["0 % of them", "by proxy", "lives"]
