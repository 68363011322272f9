"""The rules of outage causes: what is planned, what is no outage at all, and in which domain a cause can lie."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.records.jobs import conform
from ttf.records.outages.outage_records import RECORD_COLUMNS

# What a rule looks at: each a list of patterns of which one must be found, whatever the case of letters.
LOOKS_AT = ("level", "class", "cause")
# And what it says of the records it holds for.
SAYS = ("planned", "outage", "domain", "part")


def with_rules(records: pl.DataFrame, rules: Sequence[Mapping]) -> pl.DataFrame:
    """The records that are outages, with `planned` and `domain` where a rule says them and the record does not.

    rules: each {level, class, cause: patterns of Rust's regex; planned, outage: true or false; domain: texts; part: a
    text, which takes the place of the class}, tried in order: of each thing said the first rule that holds and says it
    counts. A rule holds where all it looks at fits; a blank text fits no pattern. Records of which `outage: false`
    holds are left out.
    """
    records = conform(records, RECORD_COLUMNS)
    said = {key: pl.coalesce(*(_where(rule, key) for rule in rules if key in rule), pl.lit(None)) for key in SAYS}
    frame = records.with_columns(
        planned=pl.coalesce("planned", said["planned"].cast(pl.Boolean)).fill_null(False),
        domain=pl.coalesce("domain", said["domain"].cast(pl.String)),
        **{"class": pl.coalesce(said["part"].cast(pl.String), "class")},
        is_outage=said["outage"].cast(pl.Boolean).fill_null(True),
    )
    return frame.filter("is_outage").drop("is_outage")


def _where(rule: Mapping, key: str) -> pl.Expr:
    """What the rule says, where it holds; blank elsewhere."""
    holds = [
        pl.any_horizontal(pl.col(name).str.contains(f"(?i){pattern}") for pattern in rule[name])
        for name in LOOKS_AT
        if name in rule
    ]
    value = ", ".join(rule[key]) if key == "domain" else rule[key]
    return pl.when(pl.all_horizontal(holds or [pl.lit(True)])).then(pl.lit(value))
