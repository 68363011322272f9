"""The published findings of config/claims.yaml and of a person's own, checked before any job runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ttf.engine.contract import Table

from study.documents import Problem, load_document, mean
from study.messages import ConfigError


def load_claims(path: str | Path, label: str | None = None) -> dict:
    """The document: sources by key, and the claims in order. Raises ConfigError, a line a problem."""
    return load_document(path, "claims.schema.yaml", label, _contradictions)


def _contradictions(document: dict) -> Iterator[Problem]:
    """Ids that stand more than once, and sources that nobody described."""
    times = Counter(claim["id"] for claim in document["claims"])
    for number, claim in enumerate(document["claims"]):
        if times[claim["id"]] > 1:
            yield Problem(("claims", number, "id"), f"stands {times[claim['id']]} times; each claim has its own.")
        if claim["source"] not in document["sources"]:
            sources = ", ".join(document["sources"])
            yield Problem(("claims", number, "source"), f"{claim['source']} is not under sources: {sources}.")


def check_claims(claims: Iterable[Mapping], tables: Mapping[str, Table], label: str) -> None:
    """Raises ConfigError, a line a problem, where a claim names a table or a column that no declaration has."""
    problems = []
    for claim in claims:
        quantity, where = claim.get("quantity", {}), f"{label}: claims.{claim['id']}"
        name = quantity.get("table")
        if name is not None and name not in tables:
            problems.append(f"{where}: there is no table {name}{mean(name, tables, stop='')}")
        elif name is not None:
            columns = [quantity["column"], *quantity.get("where", {}), *quantity.get("of", {})]
            columns += [quantity["over"]] if "over" in quantity else []
            there = tables[name].columns
            unknown = [column for column in columns if column not in there]
            problems += [
                f"{where}: table {name} has no column {column}{mean(column, there, stop='')}" for column in unknown
            ]
    if problems:
        raise ConfigError("\n".join(problems))
