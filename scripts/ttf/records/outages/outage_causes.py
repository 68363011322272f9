"""Rules of outage causes: planned or not, an outage or not, and the possible domains of a cause."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.records.jobs import conform
from ttf.records.outages.outage_records import RECORD_COLUMNS

# Columns that a rule matches: each has a list of patterns of which one must match, ignoring case.
PATTERN_COLUMNS = ("level", "class", "cause")
# Values that a rule assigns to the records that it matches.
KEYS = ("planned", "outage", "domain", "part")


def apply_rules(records: pl.DataFrame, rules: Sequence[Mapping]) -> pl.DataFrame:
    """Return the records that are outages, with `planned` and `domain` from the rules where the record has none.

    rules: each {level, class, cause: patterns of Rust's regex; planned, outage: true or false; domain: texts; part: a
    text that replaces the class}, tried in order: the first matching rule that assigns a key sets it. A rule matches if
    all its patterns do; a blank text matches no pattern. Records with `outage: false` are dropped.
    """
    records = conform(records, RECORD_COLUMNS)
    assigned = {key: pl.coalesce(*(_assign(rule, key) for rule in rules if key in rule), pl.lit(None)) for key in KEYS}
    frame = records.with_columns(
        planned=pl.coalesce("planned", assigned["planned"].cast(pl.Boolean)).fill_null(False),
        domain=pl.coalesce("domain", assigned["domain"].cast(pl.String)),
        **{"class": pl.coalesce(assigned["part"].cast(pl.String), "class")},
        is_outage=assigned["outage"].cast(pl.Boolean).fill_null(True),
    )
    return frame.filter("is_outage").drop("is_outage")


def _assign(rule: Mapping, key: str) -> pl.Expr:
    """Return the value of `key` in the rule for the records that match it; blank for others."""
    matches = [
        pl.any_horizontal(pl.col(name).str.contains(f"(?i){pattern}") for pattern in rule[name])
        for name in PATTERN_COLUMNS
        if name in rule
    ]
    value = ", ".join(rule[key]) if key == "domain" else rule[key]
    return pl.when(pl.all_horizontal(matches or [pl.lit(True)])).then(pl.lit(value))
