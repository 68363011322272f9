"""Readers meet the words of the field: what pages, tables, charts, messages and docs do not say, and what instead."""

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import yaml
from words_instead import slips

ROOT = Path(__file__).parents[2]
# Not: what changed in which version, and what is made from the contracts, which are looked through in the code.
MADE = ("CHANGELOG.md", "tables.md", "metrics.md")
PROSE = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "config/*.md", "report/**/*.qmd", "scripts/ttf/analyses/**/*.qmd")
    for path in ROOT.glob(pattern)
    if path.name not in MADE
)
CODE = sorted(path for folder in ("scripts", "workflow") for path in (ROOT / folder).rglob("*.py"))
# Lists of the names of columns.
CODE = [path for path in CODE if path.name != "numbers.py"]
LISTS = sorted(chain((ROOT / "config").glob("*.yaml"), (ROOT / "workflow/schemas").glob("*.yaml")))
RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))
PAGES = sorted(path for path in (ROOT / "report").rglob("*") if path.suffix in (".html", ".js", ".typ"))
OF_DATA = ("where", "of", "mapping", "outcomes", "pattern")


def prose_of(text: str) -> str:
    """Markdown without its code: names of tables and keys are what they are."""
    text = re.sub(r"^```(?!$).*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"<%.*?%>|<<.*?>>|`[^`\n]*`|\]\([^)]*\)|\{#[^}]*\}|@[\w-]+", "", text, flags=re.DOTALL)


def texts_of(code: str) -> Iterator[str]:
    """The texts in code that are no docstring and more than a name; what a text is filled with stands as 0."""
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


def values_of(node: object) -> Iterator[str]:
    """The texts in a YAML document, without those that are the data's."""
    if isinstance(node, dict):
        yield from chain.from_iterable(values_of(value) for key, value in node.items() if key not in OF_DATA)
    elif isinstance(node, list):
        yield from chain.from_iterable(map(values_of, node))
    elif isinstance(node, str):
        yield node


def found_in(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".md", ".qmd"):
        return slips(prose_of(text))
    if path.suffix in (".html", ".typ"):
        return slips(
            re.sub(r"<!--.*?-->|<[^>]*>|\{[{%#].*?[%}#]\}|^\s*//.*?$", " ", text, flags=re.DOTALL | re.MULTILINE)
        )
    if path.suffix == ".js":
        texts = [re.sub(r"\$\{.*?\}", "0", said) for said in re.findall(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`", text)]
    elif path.suffix == ".yaml":
        texts = values_of(yaml.safe_load(text))
    elif path.suffix == ".smk":
        texts = re.findall(r'"""(.*?)"""', text, re.DOTALL)
    else:
        texts = texts_of(text)
    return [slip for said in texts if " " in said or said[:1].isupper() for slip in slips(said)]


@pytest.mark.parametrize("files", [PROSE, CODE, LISTS, RULES, PAGES], ids=["prose", "code", "lists", "rules", "pages"])
def test_readers_meet_the_words_of_the_field(files):
    assert files
    assert {str(path.relative_to(ROOT)): slips for path in files if (slips := found_in(path))} == {}


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
def test_what_is_not_said_is_found(text):
    assert slips(text)


@pytest.mark.parametrize(
    "text",
    ["effective training time ratio", "95% CI 2.1–3.4%", "lives.parquet", "%Y-%m-%d %H", "requested lives_infra"],
)
def test_what_may_be_said_is_not_found(text):
    assert not slips(text)


def test_texts_of_code_are_what_it_shows():
    code = '"""a lemon"""\ndef f(x):\n    """lives on"""\n    return f"{x} % of them", "by proxy", x["lives"]\n'
    assert list(texts_of(code)) == ["0 % of them", "by proxy", "lives"]
