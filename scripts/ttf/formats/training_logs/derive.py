"""Derive durations from logs of training runs: an attempt of a run, ended by an interruption or censored.

An attempt that ended as planned, and the last one of a log that breaks off, censor. Without a clock the duration is not
known.
"""

import polars as pl
from ttf.formats.format_declaration import load_declaration
from ttf.formats.protocol import Format, Source
from ttf.raw.training_logs.line_clocks import SECOND_US
from ttf.records.clusters import add_levels
from ttf.records.durations import DURATION_COLUMNS
from ttf.records.jobs import conform
from ttf.records.training_runs import find_logs_of_events, name_runs, select_events

CLUSTERS = load_declaration("training_logs")["clusters"]


def durations(source: Source) -> pl.DataFrame:
    """Return one row per attempt, with DURATION_COLUMNS (trace blank), start_s and framework."""
    rows, events = [], select_events(source.raw["logs"]).collect().lazy()
    for name, attempts in name_runs(find_logs_of_events(events)).items():
        for number, attempt in enumerate(attempts):
            is_interrupted = not attempt.ends_well and (attempt.error is not None or number + 1 < len(attempts))
            time_s = (attempt.end_us - attempt.start_us) // SECOND_US
            rows.append(
                {
                    "unit_id": name,
                    "duration_id": number,
                    "entry_s": 0,
                    "duration_s": time_s if attempt.has_clock else None,
                }
                | {"event": "failure" if is_interrupted else None, "nodes": 1, "framework": attempt.framework}
                | {"start_s": attempt.start_us // SECOND_US if attempt.has_clock else None}
            )
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    return conform(add_levels(frame, CLUSTERS), DURATION_COLUMNS)


_SCHEMA = {
    **dict.fromkeys(("unit_id", "framework"), pl.String),
    **dict.fromkeys(("duration_id", "entry_s", "duration_s", "nodes", "start_s"), pl.Int64),
    "event": pl.String,
}
FORMAT = Format(durations=durations)
