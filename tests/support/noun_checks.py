"""Check that a sentence names what a table counts: it never calls a gap between outages a node."""

import re
from collections.abc import Iterable, Iterator, Mapping

from format_tables import FORMATS
from study_runs import ROOT
from ttf.analyses.catalogue import load_analyses
from ttf.display.phrases import noun
from ttf.engine.columns import GAP
from ttf.engine.contract import THINGS, Table
from ttf.engine.words import plural_noun
from ttf.study.configuration.yaml_files import load_yaml

CONTRACTS = [table for room in load_analyses().values() for table in room.tables]

# A number with the text that follows it, on the page and in the templates.
_ON_PAGE = re.compile(r'<data data-key="([^"]+)">([^<]*)</data>((?:[^<]|<(?!data)[^>]*>){0,80})')
_IN_TEXT = re.compile(r"\{([\w.:-]+)\|([^{}|]*)\}([^{}]{0,80})")
_OF = r" of(?: the| all| these| ended)*"


def load_trace_words(trace: str) -> dict | None:
    """Return unit, duration noun and kind of data of a trace of our registry; None for another trace."""
    entry = load_yaml(ROOT / "config/traces.yaml").get(trace)
    if entry is None:
        return None
    declaration = FORMATS[entry["format"]]
    has_outages = declaration["gives"] == "outages" or declaration.get("outages") is True
    duration_noun = (
        declaration["unit"]
        if declaration["gives"] == "jobs"
        else GAP
        if has_outages
        else declaration.get("subject", "period at risk")
    )
    return {"unit": declaration["unit"], "subject": duration_noun, "gives": declaration["gives"]}


def find_numbers(text: str) -> Iterator[tuple[str, str, str]]:
    for match in (*_ON_PAGE.finditer(text), *_IN_TEXT.finditer(text)):
        yield match[1], match[2], re.sub(r"<[^>]*>", "", match[3]).replace("\u00a0", " ")


def wrong_nouns(text: str, metrics: Mapping, contracts: Iterable[Table], trace_words: Mapping) -> list[str]:
    """List the numbers whose noun differs from what their table, or their unit, counts.

    trace_words: unit, duration and gives of the trace. A share counts its table's rows; a number counts its unit.
    """
    tables = {table.path: table for table in contracts}
    counted_things = {thing: Table(thing, "", "", {}, counted=thing) for thing in THINGS}
    nouns = {plural_noun(noun(table, trace_words)) for table in counted_things.values()} | {*THINGS}
    plurals = "|".join(sorted(nouns, key=len, reverse=True))
    faults = []
    for key, shown, following in find_numbers(text):
        unit = metrics[key]["unit"]
        counted = tables.get(metrics[key].get("source")) if unit == "share" else counted_things.get(unit)
        if counted is None or not counted.counts:
            continue
        sentence, separator = (following, _OF) if unit == "share" else (f"{shown}{following}", r"[\d,]+")
        match = re.match(rf"{separator} ({plurals})\b", sentence)
        if match and match[1] != plural_noun(noun(counted, trace_words)):
            faults.append(f"{key}: {shown}{following[:40]!r}, and {counted.name} counts {counted.counts}")
    return faults
