"""Whether sentences give numbers the noun of what their table counts: no gap between outages is called a node."""

import re
from collections.abc import Iterable, Iterator, Mapping

from of_formats import FORMATS
from study.yaml_files import load_yaml
from study_runs import ROOT
from ttf.analyses.catalogue import rooms
from ttf.display.phrases import noun
from ttf.engine.columns import GAP
from ttf.engine.contract import THINGS, Table
from ttf.engine.words import many

CONTRACTS = [table for room in rooms().values() for table in room.tables]

# A number on the page, and in the texts that it is made from; with what follows it.
_ON_PAGE = re.compile(r'<data data-key="([^"]+)">([^<]*)</data>((?:[^<]|<(?!data)[^>]*>){0,80})')
_IN_TEXT = re.compile(r"\{([\w.:-]+)\|([^{}|]*)\}([^{}]{0,80})")
_OF = r" of(?: the| all| these| ended)*"


def words_of(trace: str) -> dict | None:
    """The unit and the life of a trace of our registry, and what it gives; None of another."""
    entry = load_yaml(ROOT / "config/traces.yaml").get(trace)
    if entry is None:
        return None
    about = FORMATS[entry["format"]]
    has_outages = about["gives"] == "outages" or about.get("outages") is True
    life = about["unit"] if about["gives"] == "jobs" else GAP if has_outages else about.get("life", "period at risk")
    return {"unit": about["unit"], "life": life, "gives": about["gives"]}


def numbers_in(text: str) -> Iterator[tuple[str, str, str]]:
    """(key, words of the number, what follows it)."""
    for found in (*_ON_PAGE.finditer(text), *_IN_TEXT.finditer(text)):
        yield found[1], found[2], re.sub(r"<[^>]*>", "", found[3]).replace("\u00a0", " ")


def wrong_nouns(text: str, metrics: Mapping, contracts: Iterable[Table], about: Mapping) -> list[str]:
    """Each number of the text that has the noun of another thing than its table, or its unit, counts.

    about: unit, life and gives of the trace. A share is of what its table counts; a number is of its unit.
    """
    tables = {table.path: table for table in contracts}
    things = {thing: Table(thing, "", "", {}, counted=thing) for thing in THINGS}
    known = {many(noun(table, about)) for table in things.values()} | {*THINGS}
    plurals = "|".join(sorted(known, key=len, reverse=True))
    faults = []
    for key, shown, after in numbers_in(text):
        unit = metrics[key]["unit"]
        counted = tables.get(metrics[key].get("source")) if unit == "share" else things.get(unit)
        if counted is None or not counted.counts:
            continue
        words, between = (after, _OF) if unit == "share" else (f"{shown}{after}", r"[\d,]+")
        said = re.match(rf"{between} ({plurals})\b", words)
        if said and said[1] != many(noun(counted, about)):
            faults.append(f"{key}: {shown}{after[:40]!r}, and {counted.name} counts {counted.counts}")
    return faults
