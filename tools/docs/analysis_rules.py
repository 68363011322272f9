"""`make docs`: write workflow/rules/analyses.smk, one rule per analysis, from the declarations."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

from ttf.analyses.catalogue import load_analyses  # noqa: E402
from ttf.analyses.declaration import PRODUCTS, Analysis  # noqa: E402
from ttf.analyses.sections import THEMES  # noqa: E402
from ttf.page.results_tables import load_all_contracts  # noqa: E402

HEAD = """\
# The inputs and outputs of every analysis. Written by `make docs` from the declarations in
# scripts/ttf/analyses/<section>/<name>/__init__.py; optional inputs that a trace lacks are omitted (study.smk).
"""


def format_rules() -> str:
    return HEAD + "".join(_format_rule(name, analysis) for name, analysis in load_analyses().items())


def _format_rule(name: str, analysis: Analysis) -> str:
    theme = THEMES[analysis.theme].title
    inputs = [_format_input(input_name, analysis) for input_name in (*analysis.needs, *analysis.uses)]
    inputs = [*(["unpack(get_size_unit),"] if analysis.in_size_unit else []), *inputs]
    outputs = [
        _format_output(table.name, f'"results/{{trace}}/{table.path}"', theme, table.name in analysis.updated)
        for table in analysis.tables
    ]
    outputs += [f'{folder}=directory("results/{{trace}}/{folder}"),' for folder in analysis.folders]
    directives = {
        "input": inputs,
        "output": outputs,
        "log": [f'"logs/{{trace}}/{name}.log",'],
        "benchmark": [f'"benchmarks/{{trace}}/{name}.tsv"'],
        "group": ['GROUP["analyses"]'],
        "conda": ["ENVIRONMENT"],
        **({"threads": str(analysis.threads)} if analysis.threads != 1 else {}),
        "resources": [f'**request_resources("{name}"),'],
        "params": [f'**analysis_params("{name}"),'],
        "script": ['"../../scripts/compute.py"'],
    }
    lines = ["", "", f"rule {name}:", f'    """{analysis.question}"""']
    for directive, values in directives.items():
        if isinstance(values, str):
            lines.append(f"    {directive}: {values}")
        else:
            lines += [f"    {directive}:", *(f"        {value}" for value in values)]
    return "\n".join(lines) + "\n"


def _format_input(name: str, analysis: Analysis) -> str:
    table = load_all_contracts().get(name)
    path = PRODUCTS.get(name) or (table and table.path)
    path_text = f'"results/{{trace}}/{path}"'
    if path and name in analysis.needs:
        return f"{name}={path_text},"
    return f"{name}=optional_input({path_text})," if path else f'{name}=registry_file("{name}"),'


def _format_output(name: str, path: str, theme: str, is_updated: bool) -> str:
    marked_path = path if path.endswith('.parquet"') else f'table({path}, "{theme}")'
    return f"{name}={f'update({marked_path})' if is_updated else marked_path},"


if __name__ == "__main__":
    (ROOT / "workflow" / "rules" / "analyses.smk").write_text(format_rules(), encoding="utf-8")
