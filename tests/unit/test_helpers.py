"""The modules that a script imports directly or indirectly."""

import subprocess
import sys
from pathlib import Path

import pytest
from ttf.engine.provenance.syntax import SyntaxCache
from ttf.study.running.helpers import _syntax, compute_code_digest, find_imported_files

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
TREE = {
    "plain.py": "import os\nimport json.decoder\nfrom pathlib import Path\n",
    "direct.py": "from ttf.a import thing\n",
    "module.py": "from ttf import a\n",
    "dotted.py": "import ttf.pack.deep as deep, os\n",
    "inside.py": "def main():\n    if True:\n        from ttf.pack.deep import f\n",
    "package.py": "from ttf.pack import name\n",
    "everything.py": "from ttf.pack.deep import *\n",
    "circle.py": "import ttf.circle\n",
    "stranger.py": "from ttfoo.a import b\nimport tt\n",
    "missing.py": "from ttf.absent import f\n",
    "relative.py": "from ttf import relative\n",
    "broken.py": "from ttf.a import (\n",
    # A comment with brackets and a docstring that looks like an import.
    "prose.py": 'from ttf.a import (\n    x,  # why (so)\n)\n\n"""\nfrom ttf one learns\n"""\nfrom ttf.b import y\n',
    "ttf/__init__.py": "",
    "ttf/a.py": "from ttf.b import x\n",
    "ttf/b.py": "",
    "ttf/circle.py": "import ttf.circle2\n",
    "ttf/circle2.py": "import ttf.circle\n",
    "ttf/relative.py": "from .a import x\n",
    "ttf/pack/__init__.py": "from ttf.b import name\n",
    "ttf/pack/deep.py": "",
    "ttf/chosen.py": "from ttf.a import thing\n",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def closure(root, script, *modules):
    return {str(file.relative_to(root)) for file in find_imported_files(root / script, *modules, package=root / "ttf")}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("plain.py", set()),
        ("direct.py", {"ttf/__init__.py", "ttf/a.py", "ttf/b.py"}),
        ("dotted.py", {"ttf/__init__.py", "ttf/b.py", "ttf/pack/__init__.py", "ttf/pack/deep.py"}),
        ("inside.py", {"ttf/__init__.py", "ttf/b.py", "ttf/pack/__init__.py", "ttf/pack/deep.py"}),
        ("package.py", {"ttf/__init__.py", "ttf/b.py", "ttf/pack/__init__.py"}),
        ("circle.py", {"ttf/__init__.py", "ttf/circle.py", "ttf/circle2.py"}),
        ("prose.py", {"ttf/__init__.py", "ttf/a.py", "ttf/b.py"}),
    ],
)
def test_closure(tree, script, expected):
    assert closure(tree, script) == expected


@pytest.mark.parametrize(
    ("text", "has_changed"),
    [
        ('"""A docstring."""\n\ndef f(x):\n    """Another."""\n    return x + 1  # why\n', False),
        ("def f(x):\n\n    return (x + 1)", False),
        ("def f(x): return x + 2\n", True),
        ("def f(x): return x + 1\n\n'no docstring'\n", True),
        ("def f(x, y=0): return x + 1\n", True),
    ],
)
def test_the_digest_changes_only_with_the_syntax_tree_of_a_module(tree, text, has_changed):
    (tree / "ttf/b.py").write_text("def f(x):\n    return x + 1\n")
    files = find_imported_files(tree / "direct.py", package=tree / "ttf")
    digest_before = compute_code_digest(files)
    (tree / "ttf/b.py").write_text(text)
    _syntax.cache_clear()
    assert (compute_code_digest(files) != digest_before) == has_changed
    assert compute_code_digest(files, {tree / "ttf/b.py": "other text"}) != compute_code_digest(files)


def test_syntax_is_cached_across_processes_and_a_damaged_cache_is_ignored(tmp_path):
    file, content = tmp_path / "__pycache__/syntax.json", b"import os  # why\n"
    first = SyntaxCache(file)
    syntax = first.get("a", content, Path("a.py"))
    first.write()
    assert SyntaxCache(file).get("a", b"not read", Path("a.py")).digest == syntax.digest
    assert syntax.imports == [("os", "", 0, 1)]
    for damage in (b"", b"[]", b'{"a": 1}', b"\xff"):
        file.write_bytes(damage)
        assert SyntaxCache(file).get("a", content, Path("a.py")) == syntax


@pytest.mark.parametrize(
    ("script", "modules", "error", "message"),
    [
        ("missing.py", [], ModuleNotFoundError, "no module ttf.absent"),
        ("plain.py", ["ttf.chosn"], ModuleNotFoundError, "no module ttf.chosn"),
        ("relative.py", [], ImportError, r"relative\.py, line 1"),
        ("broken.py", [], SyntaxError, "never closed"),
    ],
)
def test_imports_that_cannot_be_resolved_are_errors(tree, script, modules, error, message):
    with pytest.raises(error, match=message):
        find_imported_files(tree / script, *modules, package=tree / "ttf")


def test_every_rule_script_imports_the_entry():
    for path in SCRIPTS.glob("*.py"):
        assert "run_rule(" not in path.read_text() or "ttf/engine/process/entry.py" in closure(SCRIPTS, path.name)


@pytest.mark.parametrize(
    "module",
    ["ttf.formats.column_mapping", "ttf.stats.durations.survival"],
)
def test_the_closure_equals_what_python_imports(tmp_path, module):
    program = (
        f"import sys, {module}\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'ttf'), sep='\\n')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(SCRIPTS)}, capture_output=True, text=True, check=True
    )
    entry = find_imported_files(SCRIPTS / "write_config.py")
    closure_paths = set(find_imported_files(SCRIPTS / "write_config.py", module))
    assert closure_paths == {Path(line) for line in run.stdout.split()} | set(entry)
