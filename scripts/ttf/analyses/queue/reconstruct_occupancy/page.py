"""Tables of the occupancy of servers in the report."""

import polars as pl

from ttf.analyses.queue.reconstruct_occupancy import DELAY_CAUSES, LONGEST_PLAIN_WAIT_S, OCCUPANCY, SERVER_SHARING
from ttf.display.report_tables import PageTable, format_range
from ttf.display.report_trace import Trace
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

# Inferred reason -> column heading.
CAUSES = {
    "fair_share": "beyond the account's observed peak (not reliable)",
    "full": "too few GPUs free",
    "fragmentation": "GPUs free, but scattered",
    "room": "there was room",
}


def context(trace: Trace, m: Numbers) -> dict:
    """Return for the template the longest wait (s) that needs no reason."""
    return {"longest_plain_wait_s": LONGEST_PLAIN_WAIT_S}


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return tables of servers and free GPUs by load, inferred reasons of waiting, and exclusive servers."""
    shown = {}
    loads = trace.table("occupancy").filter(pl.col("time_s") > 0)
    if loads.height:
        free_shares = trace.table("fragmentation").pivot("free_at_least", index="load", values="free_gpus_share")
        servers = ("servers_empty_share", "servers_partly_share", "servers_full_share")
        columns = {
            **dict.fromkeys(("load", "time_s", *servers, "free_gpus")),
            **{level: (f"on servers with ≥ {level} free", words.share) for level in ("2", "4", "8")},
            "largest_free_gpus": None,
        }
        loads = loads.join(free_shares, on="load", how="left", maintain_order="left").with_columns(format_range("load"))
        shown["occupancy"] = PageTable(loads, columns, OCCUPANCY)
    causes = trace.table("delay_causes").with_columns(format_range("group")).filter(pl.col("cause").is_not_null())
    if causes.height:
        shares = pl.concat(
            causes.with_columns(of=pl.lit(label), share=share)
            for label, share in (
                ("share of those that waited", "jobs_share"),
                ("share of their waiting time", "wait_share"),
            )
        )
        wide = shares.pivot("cause", index=["of", "group", "started", "n"], values="share")
        columns = dict.fromkeys(("group", "started", "n")) | {
            name: (heading, words.share) for name, heading in CAUSES.items()
        }
        shown["delay-causes"] = PageTable(wide, columns, DELAY_CAUSES, "of")
    sharing = (
        trace.table("server_sharing")
        .with_columns(format_range("group"))
        .filter(pl.col("dedicated_share").is_not_null())
    )
    sharing_columns = ("group", "attempts", "gpu_hours", "dedicated_share")
    return shown | {"server-sharing": PageTable(sharing, sharing_columns, SERVER_SHARING)}
