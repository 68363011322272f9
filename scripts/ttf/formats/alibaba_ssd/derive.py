"""Trouble tickets of failed SSDs at Alibaba, 2018 and 2019: a drive that failed is an outage whose end nobody wrote.

Raw table `tickets` (ssd_failure_tag.csv of alibaba-edu/dcbrain). What is made of it, and what was found in the file:

- A drive is `model/disk_id`: a number is given again to drives of other models (16,968 numbers for 18,387 drives).
- A rack is `rack_id` alone, as in the publishers' own scripts. 115 of the 5,320 numbers stand in two rooms or more.
  With the room, 18.25% of the tickets are within 30 minutes of one before or after in the rack, without it 18.30%. A
  node stands in one rack and room.
- Kind: model and application, by which drives fail alike beside their place. The application `none` is kept as it is.
- A ticket has no end, and says of no drive that it was still down later: seen_until_s is the start, so that no time
  down is made up. Which drives were watched is not in the file: there are neither rates nor repair times.
- The file names no cause. Its times have no zone, and are taken for China's.
"""

import polars as pl
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import conform
from ttf.records.outages.outage_records import RECORD_COLUMNS


def outage_records(source: Source) -> pl.DataFrame:
    """A row per failed drive, with RECORD_COLUMNS and the columns model and app, in file order."""
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
