"""A room of outages on frames at hand: its tables as read back, its charts drawn, its numbers and its text."""

import json
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import vl_convert
from given_tables import Given, metrics_of
from ttf.analyses import module_name
from ttf.analyses.catalogue import places, rooms
from ttf.display.charts.figure import Study
from ttf.display.trace_numbers import Numbers
from ttf.engine.storage.tables import read_table, write_csv
from ttf.page.report.trace_page import environment

ROOT = Path(__file__).parents[1]


class Frames(Given):
    """What a room computes from: frames by the names of products and tables, and settings."""

    def read(self, name, columns=None):
        return self[name] if columns is None else self[name].select(columns)


def tables_of(room: str, given: Frames, folder: Path) -> Given:
    """The tables of a room, each checked against its contract, written and read back."""
    computed = import_module(f"{module_name(room)}.compute").compute(given)
    contracts = {table.name: table for table in rooms()[room].tables}
    assert list(computed) == list(contracts)
    for name, table in computed.items():
        contracts[name].check(table)
        write_csv(table, folder / f"{name}.csv")
    return Given({name: read_table(folder / f"{name}.csv", contract) for name, contract in contracts.items()})


def on_page(room: str, given: Given) -> tuple[Numbers, str, dict]:
    """(numbers, text of the fold without markup, chart -> Figure) of a room; every chart is drawn at both widths."""
    metrics, drawn = metrics_of(room, given), {}
    charts = import_module(f"{module_name(room)}.charts").CHARTS if rooms()[room].charts else {}
    for name, chart in charts.items():
        for study in (Study("node"), Study("node", narrow=True)):
            drawn[name] = chart(given, study)
            spec = json.dumps(drawn[name].spec(validate=True))
            assert vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).startswith("<svg")
    page = import_module(f"{module_name(room)}.page")
    shown = page.tables(SimpleNamespace(table=given.__getitem__))
    told = {
        "unit": "node",
        "life": "gap between outages",
        "m": Numbers(metrics),
        "chart": lambda name: f"[{drawn[name].title}]",
        "table": lambda name, caption: shown[name].html(name) + caption if shown[name].frame.height else "",
        "has_chart": drawn.__contains__,
        "has_table": lambda name: shown[name].frame.height > 0,
    }
    templates = environment(ROOT / "report", places().values())
    text = "\n".join(templates.get_template(f"{name}.qmd").render(told) for name in rooms()[room].sections)
    return Numbers(metrics), re.sub(r"<[^>]*>", "", text), drawn
