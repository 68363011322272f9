"""Run an outage analysis on in-memory frames: tables read back, charts drawn, numbers and page text."""

import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import polars as pl
from drawn_figures import draw_svg
from memory_tables import TableInputs, compute_metrics
from ttf.analyses import module_name
from ttf.analyses.catalogue import find_analysis_folders, load_analyses
from ttf.display.charts.figure import Study
from ttf.display.phrases import to_markdown
from ttf.display.trace_numbers import Numbers
from ttf.engine.storage.tables import read_table, write_csv
from ttf.page.report.templates import environment

ROOT = Path(__file__).parents[2]


class Frames(TableInputs):
    """Inputs of an analysis: frames by product or table, and settings."""

    def read(self, name, columns=None):
        return self[name] if columns is None else self[name].select(columns)


def compute_tables(analysis: str, inputs: Frames, folder: Path) -> TableInputs:
    """Compute the tables of an analysis, check their contracts, write them and read them back."""
    computed = import_module(f"{module_name(analysis)}.compute").compute(inputs)
    contracts = {table.name: table for table in load_analyses()[analysis].tables}
    assert list(computed) == list(contracts)
    for name, table in computed.items():
        contracts[name].check(table)
        write_csv(table, folder / f"{name}.csv")
    return TableInputs({name: read_table(folder / f"{name}.csv", contract) for name, contract in contracts.items()})


def render_analysis(analysis: str, inputs: TableInputs) -> tuple[Numbers, str, dict]:
    """Return (numbers, text without markup, figures by chart) of an analysis; draw charts at both widths."""
    metrics, figures = compute_metrics(analysis, inputs), {}
    inputs = TableInputs({"availability": pl.DataFrame({"unit": ["node"]}), **inputs})
    charts = import_module(f"{module_name(analysis)}.charts").CHARTS if load_analyses()[analysis].charts else {}
    for name, chart in charts.items():
        for study in (Study("node"), Study("node", narrow=True)):
            figures[name] = chart(inputs, study)
            assert draw_svg(figures[name]).startswith("<svg")
    page = import_module(f"{module_name(analysis)}.page")
    tables = page.tables(SimpleNamespace(table=inputs.__getitem__))
    context = {
        "unit": "node",
        "subject": "gap between outages",
        "m": Numbers(metrics),
        "chart": lambda name: f"[{figures[name].title}]",
        "table": lambda name, caption: tables[name].html(name) + caption if tables[name].frame.height else "",
        "has_chart": figures.__contains__,
        "has_table": lambda name: tables[name].frame.height > 0,
    }
    templates = environment(ROOT / "report", find_analysis_folders().values())
    text = "\n".join(
        templates.get_template(f"{name}.qmd").render(context) for name in load_analyses()[analysis].sections
    )
    m = Numbers(metrics)
    return m, re.sub(r"<[^>]*>", "", to_markdown(text, m)), figures
