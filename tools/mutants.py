"""Change one expression of a copy of the code that computes, and run the tests nearest to it until one fails."""

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import sys
import tempfile
from collections import Counter, abc, defaultdict
from functools import cache
from importlib import import_module
from itertools import chain, count
from pathlib import Path

ROOT, TTF = Path(__file__).parents[1], Path("scripts/ttf")
FILES = "stats/**/* records/**/* formats/**/* analyses/*/*/* page/brief/* page/checks/* display/statement_rules"
NO_COMPUTATION = ("__init__", "page", "charts", "numbers", "_contracts", "_labels")  # how names of such modules end
LIBRARIES = ("common_code", "import_graph", "pytest", "hypothesis", "polars", "scipy.stats", "statsmodels.api")
PYTEST = ("-x", "-q", "-n0", "-p", "no:cacheprovider", "-Wignore::pytest.PytestAssertRewriteWarning")
PAIRS = "FloorDiv Mult, Mod Mult, Mult Div, Add Sub, Lt LtE, Gt GtE, Eq NotEq, And Or, BitAnd BitOr"  # the last applies
SWAPS = {getattr(ast, a): getattr(ast, b) for pair in PAIRS.split(", ") for a, b in (pair.split()[::-1], pair.split())}
LOGICAL, SCOPES = (ast.And, ast.Or, ast.BitAnd, ast.BitOr), (ast.FunctionDef, ast.ClassDef)
NOT_CHANGED = (ast.JoinedStr, ast.Dict, ast.DictComp, ast.Set)  # any test that runs these notices a change
IDENTITY = ("module", "function", "statement", "before", "after", "nth")  # finds a mutant again after other edits


def changes(node: ast.AST) -> abc.Iterator[tuple[str, str]]:
    """Yield the kind and the result of each change of this expression; texts are not changed."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "constant", repr(node.value + 1 if type(node.value) is int else float(f"{node.value * 1.2:.6g}") or 0.1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "boolean", ast.unparse(node.operand)
    elif isinstance(node, ast.Compare) and (swapped := SWAPS.get(type(node.ops[0]))):
        yield "comparison", ast.unparse(ast.Compare(node.left, [swapped(), *node.ops[1:]], node.comparators))
    elif isinstance(node, ast.BinOp | ast.BoolOp) and (swapped := SWAPS.get(type(node.op))):
        terms = node.values if isinstance(node, ast.BoolOp) else [node.left, node.right]
        is_text = any(isinstance(getattr(term, "value", None), str) for term in terms)
        if not is_text and not any(isinstance(part, NOT_CHANGED) for part in ast.walk(node)):
            kind = "boolean" if isinstance(node.op, LOGICAL) else "operator"
            yield kind, ast.unparse(type(node)(**dict(ast.iter_fields(node)) | {"op": swapped()}))
            if isinstance(node.op, (*LOGICAL, ast.Add, ast.Sub)):
                yield "dropped term", ast.unparse(terms[0] if len(terms) == 2 else ast.BoolOp(node.op, terms[:-1]))


def find_mutants(module: Path) -> abc.Iterator[dict]:
    """Yield all mutants of a module."""
    text, counts, pending = module.read_bytes(), Counter(), [(ast.parse(module.read_bytes()), "", "")]
    starts = [0, *(match.end() for match in re.finditer(b"\n", text))]
    while pending:
        node, function, statement = pending.pop()
        function = f"{function}.{node.name}".strip(".") if isinstance(node, SCOPES) else function
        statement = ast.unparse(node).splitlines()[0] if isinstance(node, ast.stmt) else statement
        for kind, after in changes(node):
            counts[key := (str(module), function, statement, ast.unparse(node), after)] += 1
            span = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            yield dict(zip(IDENTITY, (*key, counts[key]), strict=True), kind=kind, line=node.lineno, span=span)
        annotations = (getattr(node, "annotation", None), getattr(node, "returns", None))
        children = [child for child in ast.iter_child_nodes(node) if child not in annotations]
        pending += [(child, function, statement) for child in children[::-1] if type(child) is not ast.JoinedStr]


@cache
def imports(file: Path) -> set[Path]:
    """Return the modules that a file imports; for tests also their helpers, and analyses and formats that they name."""
    words = {*re.findall(r'(?:^from |^import |")(\w+)', file.read_text(encoding="utf-8"), re.MULTILINE)}
    helpers = {helper for helper in Path.cwd().glob("tests/support/*.py") if helper.stem in words}
    named = {module for module in Path.cwd().glob("scripts/ttf/[af]*/*/**/*.py") if module.parent.name in words}
    return import_module("import_graph").direct_imports(file) | (helpers | named if "tests" in file.parts else set())


def rank_tests(module: Path, names: list[str]) -> list[Path]:
    """Return the files of tests that use the module: nearest first, those with more of the names before others."""
    files, users, tests = {*Path.cwd().rglob("ttf/**/*.py"), *Path.cwd().rglob("tests/**/*.py")}, {module}, []
    while users:
        files -= users
        users = {file for file in files if imports(file) & users}
        ranked = sorted((sum(name in file.read_text("utf-8") for name in names), file) for file in users)
        tests += [file for _, file in reversed(ranked)]
    return [test for test in tests if test.match("tests/unit/test_*") or test.match("tests/real/test_*")]


def run_tests(arguments: list[str], limit_s: float) -> tuple[int, list[str], float]:
    """Return the exit code of pytest in a fork, negative at the limit, the first failure, and the processor time."""
    if not (process := os.fork()):
        try:
            log = os.open("pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.setsid(), os.dup2(log, 1), os.dup2(log, 2)  # some tests signal their group
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s) + 1, int(limit_s) + 1))
            sys.argv[1:] = [*PYTEST, *arguments]
            os._exit(import_module("pytest").console_main())
        finally:
            os._exit(3)
    _, status, usage = os.wait4(process, 0)
    failed = re.findall(r"(?m)^(?:FAILED|ERROR) (.+?)(?: - .*)?$", Path("pytest.log").read_text("utf-8", "replace"))
    return os.waitstatus_to_exitcode(status), failed[:1], usage.ru_utime + usage.ru_stime


def judge(mutant: dict, limit_s: float, deselected: tuple = ()) -> dict:
    """Run the two nearest files of tests, then twice as many at a time, until one fails or the limit is reached."""
    path, done, seconds, failed = Path(mutant["module"]).absolute(), 0, 0.0, []
    dotted_name = ".".join(Path(mutant["module"]).with_suffix("").parts[1:])
    tests = rank_tests(path, [dotted_name, dotted_name.rpartition(".")[0], mutant["function"].rpartition(".")[2]])
    text, (start, end) = path.read_bytes(), mutant["span"]
    path.write_bytes(b"%b(%b)%b" % (text[:start], mutant["after"].encode(), text[end:]))
    while done < len(tests) and not failed and seconds < limit_s:
        batch = tests[done : 2 * done + 2]
        code, failed, spent = run_tests([*map("--deselect={}".format, deselected), *map(str, batch)], limit_s - seconds)
        seconds, done = seconds + spent, done + len(batch) * (code >= 0)
        failed = failed or ["no test started"] * (code not in (0, 5) and seconds < limit_s)
    path.write_bytes(text)
    if failed and run_tests(failed, 600)[1]:  # it fails without a mutant, too
        return judge(mutant, limit_s, (*deselected, *failed))
    status = "killed" if failed else "survived all" if done == len(tests) else f"survived {done} of {len(tests)}"
    return mutant | {"status": status, "test": "".join(failed), "seconds": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json", type=lambda name: Path(name).absolute(), help="where to write the verdicts")
    parser.add_argument(
        "--again", type=lambda name: json.loads(Path(name).read_text()), help="judge the mutants of these"
    )
    for name, default in (("count", 60), ("seed", 46), ("limit", 150)):  # processor seconds for the tests of a mutant
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=ROOT.parent) as copy:  # beside ../shared
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", "results"), dirs_exist_ok=True)
        Path(copy, ".venv").symlink_to(ROOT / ".venv")
        os.chdir(copy)
        sys.path[:0] = [f"{copy}/scripts", f"{copy}/tests/support"]
        list(map(import_module, LIBRARIES))
        modules = sorted(chain(*(TTF.glob(f"{pattern}.py") for pattern in FILES.split())))
        mutants = [*chain(*(find_mutants(module) for module in modules if not module.stem.endswith(NO_COMPUTATION)))]
        by_identity, verdicts = {tuple(mutant[name] for name in IDENTITY): mutant for mutant in mutants}, []
        turn_by_kind, shuffled = defaultdict(count), random.Random(options.seed).sample(mutants, len(mutants))
        shuffled.sort(key=lambda mutant: (next(turn_by_kind[mutant["kind"]]), mutant["kind"]))  # as many of each kind
        for drawn in options.again or shuffled[: options.count]:
            mutant = by_identity.get(tuple(drawn[name] for name in IDENTITY))
            verdicts.append(judge(mutant, options.limit) if mutant else drawn | {"status": "gone"})
            options.json.write_text(json.dumps(verdicts, indent=1))
            print("{status} {seconds} s {module}:{line} {before} -> {after} {test}".format(**verdicts[-1]), flush=True)
    print(Counter(verdict["status"].split()[0] for verdict in verdicts))


if __name__ == "__main__":
    main()
