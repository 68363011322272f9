"""Declare the raw table `units` of a trace of outages: which units were watched, and when. Plain Python."""

from typing import Any

UNITS = "units"
# The trace's `times` in the registry give the format and the zone of these columns.
TIMES = ("from", "until")
SCHEMA: dict[str, Any] = {
    "version": 1,
    "tables": {
        UNITS: {
            "quoted": True,
            "columns": [
                {"name": "unit", "as": "unit_id", "type": "text", "required": True},
                {"name": "from", "as": "from_s", "required": True},
                # A blank end is the end of the trace.
                {"name": "until", "as": "until_s"},
                {"name": "group", "type": "text", "optional": True},
                {"name": "kind", "type": "text", "optional": True},
                {"name": "gpus", "as": "node_gpus", "type": "count", "optional": True},
            ],
            "order": ["from_s", "until_s"],
            "disjoint": ["unit_id", "from_s", "until_s"],
        }
    },
}
