"""`make rules`: write workflow/rules/analyses.smk, a rule for each analysis, out of the declarations."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from ttf.analyses.catalogue import rooms  # noqa: E402
from ttf.analyses.declaration import PRODUCTS, Analysis  # noqa: E402
from ttf.analyses.sections import THEMES  # noqa: E402
from ttf.page.results_tables import contracts  # noqa: E402

HEAD = """\
# Every analysis: what it reads and writes. Written by `make rules` out of the declarations in
# scripts/ttf/analyses/<section>/<name>/__init__.py; an input that a trace does not have is left out (analyse.smk).
"""


def rules_text() -> str:
    """The rules of all analyses of the workflow, in the order of the page."""
    return HEAD + "".join(_rule(name, analysis) for name, analysis in rooms().items())


def _rule(name: str, analysis: Analysis) -> str:
    home, mark = ("{HOME}/{{trace}}", "f") if analysis.of_study else ("{trace}", "")
    theme = THEMES[analysis.theme].title
    inputs = [_input(asked, analysis) for asked in (*analysis.needs, *analysis.uses)]
    inputs = [*(["unpack(size_unit),"] if analysis.in_size_unit else []), *inputs]
    outputs = [
        _output(table.name, f'{mark}"results/{home}/{table.path}"', theme, table.name in analysis.updated)
        for table in analysis.tables
    ]
    outputs += [f'{folder}=directory({mark}"results/{home}/{folder}"),' for folder in analysis.folders]
    directives = {
        "input": inputs,
        "output": outputs,
        "log": [f'{mark}"logs/{home}/{name}.log",'],
        "benchmark": [f'{mark}"benchmarks/{home}/{name}.tsv"'],
        "group": ['GROUP["report"]' if analysis.of_study else 'GROUP["analyses"]'],
        "conda": ["ENVIRONMENT"],
        **({"threads": str(analysis.threads)} if analysis.threads != 1 else {}),
        "resources": [f'**asks_for("{name}"),'],
        "params": [f'**told("{name}"),'],
        "script": ['"../../scripts/compute.py"'],
    }
    lines = ["", "", f"rule {name}:", f'    """{analysis.question}"""']
    for directive, values in directives.items():
        if isinstance(values, str):
            lines.append(f"    {directive}: {values}")
        else:
            lines += [f"    {directive}:", *(f"        {value}" for value in values)]
    return "\n".join(lines) + "\n"


def _input(name: str, analysis: Analysis) -> str:
    table = contracts().get(name)
    path = PRODUCTS.get(name) or (table and table.path)
    written = f'"results/{{trace}}/{path}"'
    if analysis.of_study:
        return f"{name}=of_each_trace({written}),"
    if path and name in analysis.needs:
        return f"{name}={written},"
    return f"{name}=if_there({written})," if path else f'{name}=source("{name}"),'


def _output(name: str, path: str, theme: str, is_updated: bool) -> str:
    shown = path if path.endswith('.parquet"') else f'table({path}, "{theme}")'
    return f"{name}={f'update({shown})' if is_updated else shown},"


if __name__ == "__main__":
    (ROOT / "workflow" / "rules" / "analyses.smk").write_text(rules_text(), encoding="utf-8")
