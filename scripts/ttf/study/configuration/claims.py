"""Published findings, of config/claims.yaml and of the user, checked before any job runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ttf.engine.contract import Table
from ttf.study.configuration.documents import Problem, load_document, suggest_match
from ttf.study.configuration.messages import ConfigError


def load_claims(path: str | Path, label: str | None = None) -> dict:
    """Return a document of claims: `sources` by key, `claims` in order. Raises ConfigError, one problem per line."""
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
        elif "tiles" in claim and isinstance(document["sources"][claim["source"]], str):
            text = f"{claim['source']} needs a year for tiles: write it under sources as {{title: ..., year: 2025}}."
            yield Problem(("claims", number, "source"), text)
        if any("exposure_days" in tile for tile in claim.get("tiles", ())) and not _is_count(claim["published"]):
            text = f"{claim['published']} is no count, as exposure_days of its tiles needs; use `per`."
            yield Problem(("claims", number, "published"), text)


def _is_count(value: float) -> bool:
    return value >= 1 and value == round(value)


def check_claims(claims: Iterable[Mapping], tables: Mapping[str, Table], label: str) -> None:
    """Raise ConfigError, one problem per line, for claims that name an unknown table or column."""
    problems = []
    for claim in claims:
        quantity, path = claim.get("quantity", {}), f"{label}: claims.{claim['id']}"
        name = quantity.get("table")
        if name is not None and name not in tables:
            problems.append(f"{path}: there is no table {name}{suggest_match(name, tables, ending='')}")
        elif name is not None:
            columns = [quantity["column"], *quantity.get("where", {}), *quantity.get("of", {})]
            columns += [quantity["over"]] if "over" in quantity else []
            table_columns = tables[name].columns
            problems += [
                f"{path}: table {name} has no column {column}{suggest_match(column, table_columns, ending='')}"
                for column in columns
                if column not in table_columns
            ]
    if problems:
        raise ConfigError("\n".join(problems))
