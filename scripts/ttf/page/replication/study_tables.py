"""The tables of publications with their numbers beside those of a trace, as `tables` of a claims file lays them out."""

import contextlib
from collections.abc import Mapping, Sequence
from decimal import Decimal

import polars as pl

from ttf.page.replication.findings import Datasets, fill_words, list_rows, list_study_traces
from ttf.page.replication.scorecard import (
    BLANK_CELL,
    DIFFERS,
    NOT_COMPUTABLE,
    NOT_RUN,
    NotComputable,
    Tables,
    compute_quantity,
)
from ttf.page.report_contracts import STUDY_TABLES

# Units that headings do not name.
UNNAMED_UNITS = ("share", "r", "p")


def build_study_tables(
    layouts: Mapping[str, Sequence[Mapping]],
    claims: Sequence[Mapping],
    study: Datasets,
    tables: Tables,
    scored: pl.DataFrame,
    implied: pl.DataFrame,
) -> pl.DataFrame:
    """Return STUDY_TABLES: every cell of every table, for each trace that the publication's findings are compared with.

    layouts: tables by key of their publication. scored, implied: SCORECARD and IMPLIED_N of these claims.
    """
    claim_by_id = {claim["id"]: claim for claim in claims}
    title_by_key = {claim["source_key"]: claim["source"] for claim in claims}
    scored_by_key = {(row["trace"], row["id"]): row for row in scored.iter_rows(named=True)}
    implied_by_key = {(row["trace"], row["id"]): row for row in implied.iter_rows(named=True)}

    def fill_cell(trace: str, column: Mapping, row: Mapping) -> dict:
        claim_id = fill_words(column.get("claim"), row)
        if claim_id and column.get("points"):
            return _compare_points(implied_by_key[trace, claim_id])
        printed = row.get(column.get("print", ""))
        cell = {"printed": None if printed is None else str(printed), "unit": column.get("unit")}
        if claim_id:
            cell = _compare_claim(claim_by_id[claim_id], scored_by_key[trace, claim_id])
        if "cell" not in column or cell.get("value") is not None:
            return cell
        query = fill_words(column["cell"], row)
        found = _read_cell(tables(trace, query["table"]), query)
        # Where neither has a number, the claim knows why.
        return {**found, **cell} if "value" not in found else {**cell, "verdict": None, "note": None, **found}

    rows = []
    for key, key_layouts in layouts.items():
        for trace, dataset in list_study_traces(key, claims, study).items():
            for layout in key_layouts:
                common = {"trace": trace, "source": title_by_key[key], "key": key, "dataset": dataset}
                common |= {"table": layout["name"], "remark": layout.get("note")}
                common |= {"title": layout["title"], "chart": layout.get("chart"), "heading": layout["heading"]}
                rows += [
                    common
                    | {"group": row.get("group"), "row": str(row["row"]), "column": column["head"]}
                    | fill_cell(trace, column, row)
                    for row in list_rows(layout)
                    for column in layout["columns"]
                ]
    return STUDY_TABLES.frame(rows)


def _compare_claim(claim: Mapping, row: Mapping) -> dict:
    """Return both numbers of a claim. The note says why a number is missing, or why the printed one is in doubt."""
    query = claim.get("quantity", {})
    sign = "≈" if claim["evidence"] == "digitised" else ""
    note = row["note"] if row["computed"] is None else claim.get("suspect")
    return {
        "claim": claim["id"],
        "printed": sign + claim.get("text", format_printed(claim["published"], claim.get("unit"))),
        "value": row["computed"],
        "cell": f"{query['table']}.{query['column']}" if "table" in query else None,
        "note": note,
    } | {name: row[name] for name in ("n", "unit", "verdict")}


def _compare_points(row: Mapping) -> dict:
    """Return the number of points that a printed r and p imply, and that in the trace."""
    low, high, found = row["n_low"], row["n_high"], row["n_in_data"]
    implied = None if low is None and high is None else f"{low or 'any'} to {high or 'any'}"
    # The claim itself says what is in doubt of a pair.
    note = row["note"] if row["verdict"] == NOT_RUN else None
    if row["verdict"] == DIFFERS:
        note = f"the printed r and p imply {implied} points, and here are {found}"
    return {"printed": implied, "value": found, "verdict": row["verdict"], "note": note}


def _read_cell(table: pl.DataFrame | None, query: Mapping) -> dict:
    """Return a number of a trace with its interval, or why it is missing."""
    cell = {"cell": f"{query['table']}.{query['column']}"}
    try:
        if table is None:
            raise NotComputable(f"the trace has no table {query['table']}")
        value, n = compute_quantity(table, query)
    except NotComputable as error:
        reason = str(error)
        return cell | {"verdict": NOT_COMPUTABLE, "note": None if reason == BLANK_CELL else reason}
    bounds = {}
    for side in ("low", "high"):
        with contextlib.suppress(NotComputable, KeyError):
            bounds[f"ci_{side}"] = compute_quantity(table, {**query, "column": query[side]})[0]
    return cell | bounds | {"value": value, "n": n}


def format_printed(value: float, unit: str | None) -> str:
    """Format a published number with all its digits; a share is a percentage."""
    number = Decimal(str(value)) * (100 if unit == "share" else 1)
    return f"{number.normalize():,f}".replace("-", "−") + ("%" if unit == "share" else "")


def format_value(value: float, unit: str | None) -> str:
    """Format a number of a trace in the unit of a published one."""
    if unit == "p":
        return f"{value:.2e}"
    scaled = 100 * value if unit == "share" else value
    is_whole = value == round(value) and abs(value) >= 1 and unit != "share"
    text = f"{round(value):,}" if is_whole or abs(scaled) >= 1000 else f"{scaled:,.3g}"
    text = f"{value:,.1f}" if unit == "s" else text
    return text.replace("-", "−") + ("%" if unit == "share" else "")
