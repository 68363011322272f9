"""Open tables on the disk with these functions only: they take a path literally, never as a pattern.

Polars would read `d1.csv` for `d[1].csv`, and a folder called `zone=1` as a column.
"""

from functools import partial

import polars as pl

scan_parquet = partial(pl.scan_parquet, glob=False, hive_partitioning=False)
read_parquet = partial(pl.read_parquet, glob=False, hive_partitioning=False)
scan_ipc = partial(pl.scan_ipc, glob=False, hive_partitioning=False)
scan_csv = partial(pl.scan_csv, glob=False)
read_csv = partial(pl.read_csv, glob=False)
