"""Published findings, of config/claims.yaml and of the user, checked before any job runs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ttf.engine.contract import Table
from ttf.page.replication.findings import fill_words, list_rows
from ttf.study.configuration.documents import Problem, load_document, suggest_match
from ttf.study.configuration.messages import ConfigError


def load_claims(path: str | Path, label: str | None = None) -> dict:
    """Return a document of claims: `sources` and `tables` by key, `claims` in order.

    Raises ConfigError, one problem per line.
    """
    return load_document(path, "claims.schema.yaml", label, _find_contradictions)


def _find_contradictions(document: dict) -> Iterator[Problem]:
    """Yield repeated ids, sources without a description or year, and counts that are none."""
    counts = Counter(claim["id"] for claim in document["claims"])
    for number, claim in enumerate(document["claims"]):
        if counts[claim["id"]] > 1:
            yield Problem(("claims", number, "id"), f"occurs {counts[claim['id']]} times; give each claim its own.")
        if claim["source"] not in document["sources"]:
            sources = ", ".join(document["sources"])
            yield Problem(("claims", number, "source"), f"{claim['source']} is not under sources: {sources}.")
        elif "tiles" in claim and "year" not in document["sources"][claim["source"]]:
            text = f"{claim['source']} needs a year for tiles: write it under sources as {{title: ..., year: 2025}}."
            yield Problem(("claims", number, "source"), text)
        if any("exposure_days" in tile for tile in claim.get("tiles", ())) and not _is_count(claim["published"]):
            text = f"{claim['published']} is no count, as exposure_days of its tiles needs; use `per`."
            yield Problem(("claims", number, "published"), text)

    ids = {claim["id"] for claim in document["claims"]}
    for source, layouts in document.get("tables", {}).items():
        path: tuple = ("tables", source)
        if source not in {claim["source"] for claim in document["claims"]}:
            yield Problem(path, "is not the source of a claim, so no trace has its numbers.")
        for number, layout in enumerate(layouts):
            yield from (Problem((*path, number, *key), text) for key, text in _find_layout_problems(layout, ids))


def _find_layout_problems(layout: dict, ids: set[str]) -> Iterator[tuple[tuple, str]]:
    """Yield words of a table's layout that its rows lack, and claims that do not exist."""
    for index, column in enumerate(layout["columns"]):
        path = ("columns", index)
        if not {"claim", "print", "cell"} & column.keys():
            yield path, "names no number: give it a claim, a word to print, or a cell."
        for row in list_rows(layout):
            try:
                words = fill_words({key: column[key] for key in ("claim", "cell") if key in column}, row)
            except KeyError as error:
                yield path, f"the row {row.get('row')} has no word {error.args[0]}."
                break
            if words.get("claim") and words["claim"] not in ids:
                yield (*path, "claim"), f"there is no claim {words['claim']}{suggest_match(words['claim'], ids)}"
                break
    if not all("row" in row for row in list_rows(layout)):
        yield ("rows",), "a row has no heading: name it under row."


def _is_count(value: float) -> bool:
    return value >= 1 and value == round(value)


def check_claims(document: Mapping, tables: Mapping[str, Table], label: str) -> None:
    """Raise ConfigError, one problem per line, for unknown tables and columns, and for layouts named like a table.

    tables: those of the results. Names of the page's own tables have no underscore.
    """
    problems = [
        f"{label}: tables.{source}: {name} can be the name of a table of the page or of the results, which this one "
        f"would replace; call it mine_{name}."
        for source, layouts in document.get("tables", {}).items()
        for name in (layout["name"] for layout in layouts)
        if "_" not in name or name in tables
    ]
    queries = [(f"claims.{claim['id']}", claim.get("quantity", {})) for claim in document["claims"]]
    queries += [
        (f"tables.{source}.{layout['name']}.{column['head']}", column.get("cell", {}))
        for source, layouts in document.get("tables", {}).items()
        for layout in layouts
        for column in layout["columns"]
    ]
    for key, quantity in queries:
        path = f"{label}: {key}"
        name = quantity.get("table")
        if name is not None and name not in tables:
            problems.append(f"{path}: there is no table {name}{suggest_match(name, tables, ending='')}")
        elif name is not None:
            columns = [quantity["column"], *quantity.get("where", {}), *quantity.get("of", {})]
            columns += [quantity[key] for key in ("over", "low", "high") if key in quantity]
            table_columns = tables[name].columns
            problems += [
                f"{path}: table {name} has no column {column}{suggest_match(column, table_columns, ending='')}"
                for column in columns
                if column not in table_columns
            ]
    if problems:
        raise ConfigError("\n".join(problems))
