"""The modules that a script imports, directly or through another."""

import subprocess
import sys
from pathlib import Path

import pytest
from study.helpers import _content, _stamp, helpers, stamped, stamps

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
    # A bracket in a comment, and prose that begins like a statement.
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
    return {str(file.relative_to(root)) for file in helpers(root / script, *modules)}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("plain.py", set()),
        ("stranger.py", set()),
        ("direct.py", {"ttf/__init__.py", "ttf/a.py", "ttf/b.py"}),
        ("module.py", {"ttf/__init__.py", "ttf/a.py", "ttf/b.py"}),
        ("dotted.py", {"ttf/__init__.py", "ttf/b.py", "ttf/pack/__init__.py", "ttf/pack/deep.py"}),
        ("inside.py", {"ttf/__init__.py", "ttf/b.py", "ttf/pack/__init__.py", "ttf/pack/deep.py"}),
        ("everything.py", {"ttf/__init__.py", "ttf/b.py", "ttf/pack/__init__.py", "ttf/pack/deep.py"}),
        ("package.py", {"ttf/__init__.py", "ttf/b.py", "ttf/pack/__init__.py"}),
        ("circle.py", {"ttf/__init__.py", "ttf/circle.py", "ttf/circle2.py"}),
        ("prose.py", {"ttf/__init__.py", "ttf/a.py", "ttf/b.py"}),
    ],
)
def test_closure(tree, script, expected):
    assert closure(tree, script) == expected


def test_modules_named_beside_the_script(tree):
    assert closure(tree, "plain.py", "ttf.chosen") == {"ttf/__init__.py", "ttf/chosen.py", "ttf/a.py", "ttf/b.py"}


def test_a_stamp_is_another_once_the_file_holds_something_else(tree):
    files = helpers(tree / "direct.py")
    before = stamps(tree, files)
    assert stamped(before) == ["ttf/__init__.py", "ttf/a.py", "ttf/b.py"]
    (tree / "ttf/a.py").touch()
    (tree / "ttf/b.py").write_text("x = 1\n")
    for function in (_stamp, _content):
        function.cache_clear()
    changed = [new for new, old in zip(stamps(tree, files), before, strict=True) if new != old]
    assert stamped(changed) == ["ttf/b.py"]


def test_sorted_so_that_the_parameters_of_a_rule_do_not_change(tree):
    assert list(helpers(tree / "dotted.py")) == sorted(helpers(tree / "dotted.py"))


@pytest.mark.parametrize(
    ("script", "modules", "error", "says"),
    [
        ("missing.py", [], ModuleNotFoundError, "no module ttf.absent"),
        ("plain.py", ["ttf.chosn"], ModuleNotFoundError, "no module ttf.chosn"),
        ("relative.py", [], ImportError, r"relative\.py, line 1"),
        ("broken.py", [], SyntaxError, "broken"),
    ],
)
def test_what_cannot_be_followed(tree, script, modules, error, says):
    with pytest.raises(error, match=says):
        helpers(tree / script, *modules)


def test_ingest_needs_no_statistics():
    found = closure(SCRIPTS, "ingest.py")
    assert {"ttf/entry.py", "ttf/errors.py", "ttf/ingest.py", "ttf/raw_files.py", "ttf/raw_tables.py"} <= found
    assert not any(name.startswith(("ttf/stats/", "ttf/formats/sacct/", "ttf/charts/")) for name in found)


@pytest.mark.parametrize(("format_", "other"), [("acme", "pai2020"), ("pai2020", "acme")])
def test_a_format_needs_no_other(format_, other):
    found = closure(SCRIPTS, "derive_runtimes.py", f"ttf.formats.{format_}.derive")
    assert {f"ttf/formats/{format_}/derive.py", f"ttf/formats/{format_}/format.yaml"} <= found
    assert not any(name.startswith(f"ttf/formats/{other}/") for name in found)
    assert "ttf/jobs.py" in found
    assert not any(name.startswith("ttf/stats/") for name in found)


@pytest.mark.parametrize(
    "script", sorted(path.name for path in SCRIPTS.glob("*.py") if "run_rule(" in path.read_text())
)
def test_every_entry_can_be_followed(script):
    assert "ttf/entry.py" in closure(SCRIPTS, script)


@pytest.mark.parametrize("module", ["ttf.formats.mapped", "ttf.ingest", "ttf.derived", "ttf.stats.survival"])
def test_the_closure_is_what_python_imports(tmp_path, module):
    program = (
        f"import sys, {module}\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'ttf'), sep='\\n')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(SCRIPTS)}, capture_output=True, text=True, check=True
    )
    entry = helpers(SCRIPTS / "write_config.py")
    followed = set(helpers(SCRIPTS / "write_config.py", module))
    assert followed == {Path(line) for line in run.stdout.split()} | set(entry)
