"""What is wrong with the tables of published studies on the page of a trace."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import polars as pl
from shipped_claims import DOCUMENT
from ttf.page.replication.findings import fill_words, list_rows
from ttf.page.replication.scorecard import NotComputable, compute_quantity

CLAIM_BY_ID = {claim["id"]: claim for claim in DOCUMENT["claims"]}


def read_html_tables(page: str) -> dict[str, list[str]]:
    """Return the cells of each table of a page by its name: exact number where it has one, else text."""
    tables = {}
    for name, body in re.findall(r'<table data-name="([^"]+)".*?>(.*?)</table>', page, re.DOTALL):
        cells = re.findall(r"<t[dh]([^>]*)>([^<]*)", body)
        tables[name] = [
            exact[1] if (exact := re.search(r'data-v="([^"]*)"', tag)) else unescape(text) for tag, text in cells
        ]
    return tables


def wrong_study_cells(results: Path, study: str, trace: str, key: str) -> list[str]:
    """Return the faults of the tables of a publication on the page: printed numbers, and cells of the trace."""
    cells = pl.read_csv(results / f"studies/{study}/study_tables.csv", infer_schema_length=None).filter(
        trace=trace, key=key
    )
    pages = results / f"studies/{study}/report"
    page = next(file for file in (pages / f"{trace}.html", pages / "index.html") if file.is_file())
    on_page = read_html_tables(page.read_text(encoding="utf-8"))
    return list(_find_faults(results / trace, cells, on_page, DOCUMENT["tables"][key]))


def _find_faults(folder: Path, cells: pl.DataFrame, on_page: dict, layouts: list[dict]) -> Iterator[str]:
    for layout in layouts:
        name = layout["name"]
        if name not in on_page:
            yield f"{name} is not on the page"
            continue
        for row in list_rows(layout):
            for column in layout["columns"]:
                label = f"{name}, {row.get('group')}, {row['row']}, {column['head']}"
                matching = cells.filter(table=name, row=str(row["row"]), column=column["head"])
                matching = matching.filter(pl.col("group").eq_missing(pl.lit(row.get("group"))))
                if matching.height != 1:
                    yield f"{label}: {matching.height} cells"
                    continue
                cell = matching.row(0, named=True)
                claim = CLAIM_BY_ID.get(fill_words(column.get("claim", ""), row) or "")
                if (claim or row.get(column.get("print"))) and not cell["printed"] and not column.get("points"):
                    yield f"{label}: nothing is printed"
                if cell["printed"] and cell["printed"].replace(" ", "") not in {
                    text.replace("\u00a0", "").replace(" ", "") for text in on_page[name]
                }:
                    yield f"{label}: {cell['printed']} is not on the page"
                query = (claim or {}).get("quantity", {})
                if "table" not in query:
                    query = fill_words(column.get("cell", {}), row)
                expected = _read_cell(folder, query) if "table" in query else None
                if "table" in query and not column.get("points") and cell["value"] != expected:
                    yield f"{label}: {cell['value']} instead of {expected}"
                of_one_unit = cells.filter(table=name, column=column["head"])["unit"].drop_nulls().n_unique() < 2
                if cell["value"] is not None and of_one_unit:
                    numbers = {float(text) for text in on_page[name] if re.fullmatch(r"-?[\d.]+(e[-+]?\d+)?", text)}
                    if float(cell["value"]) not in numbers:
                        yield f"{label}: {cell['value']} is not on the page"


def _read_cell(folder: Path, query: dict) -> float | None:
    file = folder / f"{query['table'] if '/' in query['table'] else 'tables/' + query['table']}.csv"
    if query["table"] == "row_account":
        file = folder / "quality/row_account.csv"
    if not file.is_file():
        return None
    try:
        return compute_quantity(pl.read_csv(file, infer_schema_length=None), query)[0]
    except NotComputable:
        return None
