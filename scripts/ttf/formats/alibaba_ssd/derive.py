"""Derive outages from trouble tickets of failed SSDs at Alibaba, 2018 and 2019: an outage per drive, without an end.

Raw table `tickets` (ssd_failure_tag.csv of alibaba-edu/dcbrain). Rules and findings:

- A drive is `model/disk_id`, because drives of different models share numbers (16,968 numbers for 18,387 drives).
- A rack is `rack_id` alone, as in the publishers' own scripts. 115 of the 5,320 numbers are in two rooms or more. With
  the room, 18.25% of the tickets are within 30 minutes of another one in the rack; without it, 18.30%. A node is in one
  rack and room.
- Kind: model and application, which influence failures in addition to the location. The application `none` is kept.
- A ticket has no end, and the file does not say how long a drive was down. So seen_until_s is the start: no downtime
  is invented. The file does not list the drives under observation: there are neither rates nor repair times.
- The file has no causes. Its times have no zone; China's is assumed.
"""

import polars as pl
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import conform
from ttf.records.outages.outage_records import RECORD_COLUMNS


def outage_records(source: Source) -> pl.DataFrame:
    """Return one record per failed drive, with RECORD_COLUMNS and the columns model and app, in file order."""
    frame = (
        source.raw["tickets"]
        .filter(pl.col("failure") == 1)
        .select(
            unit_id=pl.concat_str("model", "disk_id", separator="/"),
            node="node_id",
            rack="rack_id",
            group="machine_room_id",
            kind=pl.concat_str("model", "app", separator="/"),
            start_s="start_s",
            seen_until_s="start_s",
            model="model",
            app="app",
        )
        .collect()
    )
    return conform(frame, RECORD_COLUMNS)


FORMAT = Format(outage_records=outage_records)
