"""The raw tables that a person may add to a trace of any format: health events and losses, each under a key of its own.

Declared as the raw tables of a format are (scripts/ttf/formats), and read by the same reader. Plain Python.
"""

# Key of the registry -> the table, and the name by which rules and analyses ask for it.
TABLES = {"health_events": ("health_event", "events"), "loss_log": ("loss", "losses")}

# Without an offset a time is UTC, whatever the zone of the trace.
_TIME = {"type": "time", "as": "time_s", "required": True}
_TIME |= {"formats": ["epoch", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%#z"]}

SCHEMA = {
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
                # A number with a fraction, negative, nan or inf: ttf.raw.extra_table_reader looks at it.
                {"name": "loss", "type": "text", "required": True},
                {"name": "time", **_TIME},
            ],
        },
    },
}
