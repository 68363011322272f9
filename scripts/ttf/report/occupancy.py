"""The tables of the occupancy of servers in the report."""

from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import html_table, span
from ttf.report.trace import Trace

# The proxy of a cause, as the heading of a column.
CAUSES = {
    "fair_share": "beyond the account's observed peak (not reliable)",
    "full": "too few GPUs free",
    "fragmentation": "GPUs free, but scattered",
    "room": "there was room",
}


def occupancy_tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """Servers and free GPUs by load; the proxy of why jobs waited, by their GPUs; servers to oneself."""
    tables = {}
    known = trace.table("occupancy").filter(pl.col("time_s") > 0)
    if known.height:
        pieces = trace.table("fragmentation").pivot("free_at_least", index="load", values="free_gpus_share")
        columns = {
            "load": ("GPUs in use", None),
            "time_s": ("Time", words.duration),
            "servers_empty_share": ("Servers empty", words.share),
            "servers_partly_share": ("partly used", words.share),
            "servers_full_share": ("full", words.share),
            "free_gpus": ("Free GPUs", words.number),
            **{level: (f"on servers with ≥ {level} free", words.share) for level in ("2", "4", "8")},
            "largest_free_gpus": ("Most free on one", words.number),
        }
        shown = known.join(pieces, on="load", how="left", maintain_order="left")
        tables["occupancy"] = html_table(shown.with_columns(span("load")), columns, identifier("occupancy"))
    causes = trace.table("delay_causes").with_columns(span("group")).filter(pl.col("cause").is_not_null())
    if causes.height:
        both = pl.concat(
            [
                causes.with_columns(of=pl.lit("share of those that waited"), share="jobs_share"),
                causes.with_columns(of=pl.lit("share of their waiting time"), share="wait_share"),
            ]
        )
        wide = both.pivot("cause", index=["of", "group", "started", "n"], values="share")
        columns = {
            "group": ("GPUs", None),
            "started": ("Started", words.count),
            "n": ("Waited", words.count),
            **{name: (heading, words.share) for name, heading in CAUSES.items()},
        }
        tables["delay-causes"] = html_table(wide, columns, identifier("delay-causes"), group="of")
    sharing = trace.table("server_sharing").with_columns(span("group")).filter(pl.col("dedicated_share").is_not_null())
    if sharing.height:
        columns = {
            "group": ("GPUs", None),
            "attempts": ("Attempts", words.count),
            "gpu_hours": ("GPU hours", words.number),
            "dedicated_share": ("on servers to themselves", words.share),
        }
        tables["server-sharing"] = html_table(sharing, columns, identifier("server-sharing"))
    return tables
