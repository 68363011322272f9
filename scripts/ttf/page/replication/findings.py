"""Documents of published findings: their claims, the layouts of their tables, and the traces that they are about."""

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

# Trace of the study -> its data sets: its name, that of its registry entry, its format.
Datasets = Mapping[str, Collection[str]]
_VARIABLE = re.compile(r"\{(\w+)\}")


def read_claims(documents: Sequence[Mapping]) -> list[dict]:
    """Return the claims of documents, each with its source: `source` (title), `source_key`, year and `beside`."""
    claims = []
    for document in documents:
        for claim in document["claims"]:
            source = document["sources"][claim["source"]]
            source = {"title": source} if isinstance(source, str) else source
            claims.append(
                claim
                | {"source_key": claim["source"], "source": source["title"]}
                | {"year": source.get("year"), "beside": source.get("beside", [])}
            )
    return claims


def match_traces(claim: Mapping, study: Datasets) -> list[list[str]]:
    """Return the traces that a claim is compared with: each of its data set, with one of each pooled data set.

    Without a trace of its data set, those of a format in `beside` of its source.
    """
    datasets = claim_datasets(claim)
    first, *pooled = ([trace for trace, names in study.items() if name in names] for name in datasets)
    if not first and not pooled:
        first = [trace for trace, names in study.items() if {*claim.get("beside", ())} & {*names}]
    return [[trace, *(traces[0] for traces in pooled)] for trace in first] if all(pooled) else []


def claim_datasets(claim: Mapping) -> list[str]:
    """Return the data sets whose tables a claim needs: its own, and those pooled with it."""
    return [claim["of"], *claim.get("quantity", {}).get("also", [])]


def merge_layouts(documents: Sequence[Mapping]) -> dict[str, list[dict]]:
    """Return the layouts of tables by key of their publication, of all documents of claims."""
    layouts: dict[str, list[dict]] = {}
    for document in documents:
        for key, tables in document.get("tables", {}).items():
            layouts.setdefault(key, []).extend(tables)
    return layouts


def list_rows(layout: Mapping) -> Iterator[dict]:
    """Yield the rows of a table's layout: the product of its lists, the items of each merged."""
    return (reduce(or_, items) for items in itertools.product(*layout["rows"]))


def fill_words(template: Any, row: Mapping) -> Any:
    """Return a part of a layout with the words of a row for {names}; a text that is one name becomes the value."""
    if isinstance(template, Mapping):
        return {key: fill_words(value, row) for key, value in template.items()}
    if isinstance(template, list):
        return [fill_words(item, row) for item in template]
    if not isinstance(template, str):
        return template
    variable = _VARIABLE.fullmatch(template)
    return row[variable[1]] if variable else _VARIABLE.sub(lambda match: str(row[match[1]]), template)


def list_cell_tables(layouts: Sequence[Mapping]) -> list[str]:
    """Return the tables of a trace that the cells of these layouts are in."""
    cells = (column["cell"] for layout in layouts for column in layout["columns"] if "cell" in column)
    return sorted({cell["table"] for cell in cells})


def list_study_traces(key: str, claims: Sequence[Mapping], study: Datasets) -> dict[str, str]:
    """Map each trace that a publication's findings are compared with to the data set of the findings."""
    dataset_by_trace: dict[str, str] = {}
    for claim in claims:
        for traces in match_traces(claim, study) if claim["source_key"] == key else ():
            dataset_by_trace.setdefault(traces[0], claim["of"])
    return dataset_by_trace
