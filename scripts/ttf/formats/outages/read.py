"""Read a table of outages of any layout, with the mapping of the registry, and a table of the watched units."""

from collections.abc import Mapping
from typing import Any

from ttf.formats.outages.units_schema import SCHEMA, TIMES, UNITS
from ttf.formats.protocol import Reading
from ttf.formats.table import read as table


def schema_document(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Build the schemas of outages and units from the trace's entry in the registry; all times have one format.

    A row of an outage belongs to a row of its unit. Raises StudyError as `ttf.formats.table.read.schema_document`.
    """
    document, times = table.schema_document(entry), table.make_time_rules(entry)
    units = SCHEMA["tables"][UNITS]
    # A trace on its own clock may begin at 0.
    rules = {"from": times | {"zero_is_blank": False}, "until": times}
    columns = [
        column | {"blank": ["", *entry.get("blank", [])]} | (rules[column["name"]] if column["name"] in TIMES else {})
        for column in units["columns"]
    ]
    rows = document["tables"][table.TABLE] | {"belongs_to": {"table": UNITS, "by": ["unit_id"]}}
    return document | {"tables": {UNITS: units | {"columns": columns}, table.TABLE: rows}}


READING = Reading(table.READERS, schema_document)
