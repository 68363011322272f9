"""Declare the raw tables that a user may add to a trace of any format: health events and losses, each under its key.

They are declared and read like the raw tables of a format (scripts/ttf/formats). Plain Python.
"""

from typing import Any

# Key of the registry -> the table, and the name that rules and analyses use.
TABLES = {"health_events": ("health_event", "events"), "loss_log": ("loss", "losses")}

# A time without an offset is UTC, whatever the zone of the trace. It may count from the trace's own origin.
_TIME = {"type": "time", "as": "time_s", "required": True, "minimum": 0}
_TIME |= {"formats": ["epoch", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%#z"]}

SCHEMA: dict[str, Any] = {
    "version": 1,
    "tables": {
        "health_event": {
            "quoted": True,
            "may_be_empty": True,
            "columns": [
                {"name": "node", "type": "text", "required": True},
                {"name": "time", **_TIME},
                {"name": "code", "type": "text", "required": True},
                {"name": "severity", "type": "text"},
            ],
        },
        "loss": {
            "quoted": True,
            "may_be_empty": True,
            "columns": [
                {"name": "job", "type": "text", "required": True},
                {"name": "epoch", "type": "count", "required": True},
                # Any float, also negative, nan or inf: ttf.raw.extra_table_reader checks it.
                {"name": "loss", "type": "text", "required": True},
                {"name": "time", **_TIME},
            ],
        },
    },
}
