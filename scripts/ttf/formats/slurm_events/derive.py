"""Derive records of outages, and the exposure of nodes, from Slurm's node events.

Slurm writes a row when a node becomes unusable: down, failing, or drained (asked to drain *and* empty). Verified on
Slurm 22.05 and in the source of 26.11:
- An open row ends `Unknown`, and a later dump has its end: cluster, node and start identify a row. Another row of the
  node closes it too.
- A new state or reason during an outage closes the row and opens another in the same second. New nodes or resources of
  the cluster do so for all nodes at once: false ends and starts. So rows of a node that touch are merged.
- The first reason is the symptom ("Not responding"), a later one often the cause.
- User is Slurm's own even if a person drained a node with jobs on it, so Slurm's reasons are recognised by their text.
- After a cold start of the controller every node has a row with state UNK and reason cold-start, until it responds.
- Not all rows are failures, or outages: config/outage_causes.yaml has the rules.
"""

import polars as pl
from ttf.engine.errors import StudyError
from ttf.formats.protocol import Format, Source
from ttf.formats.sacct.hostlist import node_lists
from ttf.records.jobs import last_moment
from ttf.records.outages.exposure import find_watched_units

# Kind -> case-insensitive pattern of the reasons that Slurm itself writes.
KIND_PATTERNS = {
    "Not responding": r"^not responding",
    "Unexpectedly rebooted": r"^node unexpectedly rebooted",
    "Low RealMemory": r"^low realmemory",
    "Low CPUs": r"^low (?:cpu|socket|core|thread)",
    "Low TmpDisk": r"^low tmpdisk",
    "GRES missing": r"^gres/\S+ (?:count|gres)",
    "Prolog error": r"^prolog (?:error|fail)",
    "Epilog error": r"^epilog (?:error|fail)",
    "Kill task failed": r"^kill task failed",
    "Job not ended": r"^batch job complete failure",
    "Duplicate job id": r"^duplicate jobid",
    "Resume timed out": r"^(?:resumetimeout reached|reboot timed out)",
    "Health check": r"^(?:nhc\b|health[ _-]?check)",
    # Slurm adds it to the reason of the reboot.
    "Reboot": r"(?:^|: )reboot (?:asap|requested|issued|complete)",
    "Registration": r"^(?:cold-start|first registration|node-update)$",
    "Power saving": r"^power(?:ed|ing)? ?(?:down|up|save)",
    "Future": r"^(?:future|set to state=future)$",
}
PERSON = "Set by a person"
# Reasons with the least information about the cause of an outage: symptoms and non-failures.
SYMPTOMS = ("Not responding", "Unexpectedly rebooted")
NON_FAILURES = ("Reboot", "Registration", "Power saving", "Future")
# Word in a state -> level; the first match counts. Suffixes of a word (`*`, `$`, `^` ...) are ignored.
LEVEL_BY_WORD = {"MAINT": "maint", "FAIL": "fail", "DRAIN|DRNG": "drained", "DOWN": "down", "BOOT": "reboot"}
LEVEL_BY_WORD |= {"POW": "powered down", "FUT": "future", "INVAL": "invalid", "UNK": "unknown"}
# The same by the bits of StateRaw (slurm.h), for a dump without State; the low four bits are the base state.
LEVEL_BY_BIT = {0x8000: "maint", 0x2000: "fail", 0x200: "drained", 0x110000: "reboot", 0x1000: "powered down"}
LEVEL_BY_BIT |= {0x400000: "invalid"}
LEVEL_BY_BASE = {0: "unknown", 1: "down", 6: "future"}
REGISTERED = r"(?i)registered tres"


def outage_records(source: Source) -> pl.DataFrame:
    """Merge adjoining and overlapping rows of a node into RECORD_COLUMNS and extras, sorted by node and time.

    level: down, drained, fail, maint, reboot ... class: the kind of reason (KIND_PATTERNS, or PERSON). cause: the text
    of the last reason that is more than a symptom. Extras are symptom (the first reason), user and rows (how many).
    """
    rows = prepare_node_rows(source)
    latest_s = pl.coalesce("end_s", "seen_until_s").cum_max().shift().over("unit_id")
    rows = rows.with_columns(record=(pl.col("start_s") > latest_s).fill_null(True).cum_sum())
    kind = pl.col("class")
    # After a cold start of the controller, an outage begins only once the node has contacted the controller.
    has_contact = (kind != "Registration").fill_null(True)
    rows = rows.filter((has_contact.cum_sum().over("record") > 0) | ~has_contact.any().over("record"))
    information = pl.when(pl.col("cause").is_null()).then(0).when(kind.is_in(NON_FAILURES)).then(1)
    rows = rows.with_columns(information=information.when(kind.is_in(SYMPTOMS)).then(2).otherwise(3))
    is_most_informative = pl.col("information") == pl.col("information").max()
    return (
        rows.group_by("record", maintain_order=True)
        .agg(
            pl.col("unit_id", "node", "group").first(),
            pl.col("start_s").min(),
            end_s=pl.when(pl.col("end_s").null_count() == 0).then(pl.col("end_s").max()),
            seen_until_s=pl.coalesce("end_s", "seen_until_s").max(),
            **{name: pl.col(name).filter(is_most_informative).last() for name in ("level", "class", "cause", "user")},
            symptom=pl.col("cause").drop_nulls().first(),
            rows=pl.len().cast(pl.Int64),
        )
        .drop("record")
    )


def prepare_node_rows(source: Source) -> pl.DataFrame:
    """Return the rows of nodes without repetitions, by unit and time, with level, class, cause and user.

    An open row ends at the start of the node's next row. Otherwise end_s is blank, and seen_until_s is the last moment
    of the trace if the cluster's last dump still has the row, else the last moment of the dump that has it.
    """
    events = source.raw["node_event"].collect()
    has_clusters = events["cluster"].drop_nulls().n_unique() > 1
    dump_end_s = pl.max_horizontal("start_s", "end_s").max()
    rows = events.filter(pl.col("node").is_not_null()).with_columns(pl.col("cluster").fill_null(""))
    rows = rows.with_columns(dump_end_s=dump_end_s.over("cluster", "file"))
    is_last = pl.col("dump_end_s") == pl.col("dump_end_s").max().over("cluster")
    seen_until_s = pl.when(is_last).then(pl.lit(trace_end_s(source), pl.Int64)).otherwise("dump_end_s")
    details = ("state", "state_raw", "reason", "user")
    merged = (
        rows.with_columns(seen_until_s=seen_until_s)
        .sort("cluster", "node", "start_s", "dump_end_s", "file", "line")
        .group_by("cluster", "node", "start_s", maintain_order=True)
        .agg(pl.col("end_s", "seen_until_s").max(), pl.col(details).drop_nulls().last())
    )
    next_start_s = pl.col("start_s").shift(-1).over("cluster", "node")
    reason = pl.col("reason").str.strip_chars().replace("", None)
    return merged.select(
        **_unit_columns(has_clusters),
        start_s="start_s",
        end_s=pl.coalesce("end_s", next_start_s),
        seen_until_s="seen_until_s",
        level=parse_level(),
        **{"class": classify_reason(reason)},
        cause=reason,
        user="user",
    )


def classify_reason(reason: pl.Expr) -> pl.Expr:
    """Return the kind of each reason; blank for a blank reason."""
    kinds = (pl.when(reason.str.contains(f"(?i){text}")).then(pl.lit(kind)) for kind, text in KIND_PATTERNS.items())
    return pl.coalesce(*kinds, pl.when(reason.is_not_null()).then(pl.lit(PERSON)))


def parse_level() -> pl.Expr:
    """Return the level of the state: from `state`, else from the bits in `state_raw`."""
    text, bits = pl.col("state").str.to_uppercase(), _parse_decimal_or_hex("state_raw")
    words = [pl.when(text.str.contains(word)).then(pl.lit(name)) for word, name in LEVEL_BY_WORD.items()]
    flags = [pl.when((bits & flag) > 0).then(pl.lit(name)) for flag, name in LEVEL_BY_BIT.items()]
    bases = [pl.when((bits & 15) == base).then(pl.lit(name)) for base, name in LEVEL_BY_BASE.items()]
    return pl.coalesce(*words, pl.when(text.is_null()).then(pl.coalesce(*flags, *bases)), text.str.to_lowercase())


def _parse_decimal_or_hex(column: str) -> pl.Expr:
    text = pl.col(column).str.strip_chars().str.to_lowercase()
    hexadecimal = text.str.strip_prefix("0x").str.to_integer(base=16, strict=False)
    return pl.when(text.str.starts_with("0x")).then(hexadecimal).otherwise(text.cast(pl.Int64, strict=False))


def exposure(source: Source) -> pl.DataFrame:
    """Return when each node was under observation: unit_id, node, group, from_s, until_s.

    The first available source counts. 1. The cluster's own events: a node belongs to the cluster from the start of a
    registration that lists it to its end, or to the end of the trace. 2. `nodes` and `window_days` of the registry:
    the named nodes, and unnamed nodes up to `nodes`. 3. The jobs: the nodes that they ran on, and nodes with an event
    in the same period, from the first moment of any job to the end of the trace.
    Raises StudyError if there is no source, a hostlist is invalid, or more nodes have events than `nodes`.
    """
    registered = registered_exposure(source)
    if registered.height:
        return registered
    rows, last_s = prepare_node_rows(source), trace_end_s(source)
    first_s = rows.select(pl.col("start_s").min()).item()
    nodes = rows.select("unit_id", "node", "group")
    if source.placements is not None:
        first_s = source.placements.select(pl.col("start_s").min()).collect().item()
        job_nodes = source.placements.select(pl.col("node").unique()).collect().with_columns(unit_id="node")
        event_nodes = rows.filter(pl.coalesce("end_s", "seen_until_s") >= first_s).select("unit_id", "node", "group")
        nodes = pl.concat([event_nodes, job_nodes], how="diagonal")
    elif "nodes" not in source.meaning:
        raise StudyError(
            "the node events do not list the nodes of the cluster: no row is a registration of the cluster. Add a dump "
            "of sacctmgr -P show event All_Time Event=Cluster format=Cluster,ClusterNodes,Start,End,TRES,Reason, or "
            "set nodes in the trace's entry in the registry."
        )
    meaning = source.meaning if "nodes" in source.meaning else {"nodes": nodes["unit_id"].n_unique()}
    return find_watched_units(nodes, meaning, first_s or 0, last_s or 0)


def registered_exposure(source: Source) -> pl.DataFrame:
    """Return the exposure according to the cluster's own events; no rows if a dump has none."""
    events = source.raw["node_event"].collect()
    has_clusters = events["cluster"].drop_nulls().n_unique() > 1
    is_registration = pl.col("reason").str.contains(REGISTERED).fill_null(True)
    registrations = (
        events.filter(pl.col("node").is_null() & pl.col("cluster_nodes").is_not_null() & is_registration)
        .with_columns(pl.col("cluster").fill_null(""))
        .sort("cluster", "start_s", "file", "line")
        .group_by("cluster", "start_s", maintain_order=True)
        .agg(pl.col("end_s").max(), pl.col("cluster_nodes").last())
    )
    next_start_s = pl.col("start_s").shift(-1).over("cluster")
    registrations = registrations.with_columns(
        until_s=pl.coalesce("end_s", next_start_s, pl.lit(trace_end_s(source), pl.Int64))
    )
    registrations = registrations.hstack(node_lists(registrations["cluster_nodes"]))
    if (errors := registrations["node_list_reason"].drop_nulls()).len():
        raise StudyError(
            f"Cluster Nodes of the node events: {errors[0].removeprefix('NodeList ')}. Print the dump with -P."
        )
    memberships = registrations.select("cluster", "start_s", "until_s", node="node_list").explode("node")
    memberships = memberships.select(**_unit_columns(has_clusters), from_s="start_s", until_s="until_s").sort(
        "unit_id", "from_s"
    )
    is_first = (pl.col("from_s") > pl.col("until_s").cum_max().shift().over("unit_id")).fill_null(True)
    return (
        memberships.group_by("unit_id", "node", "group", is_first.cum_sum().alias("spell"), maintain_order=True)
        .agg(pl.col("from_s").min(), pl.col("until_s").max())
        .drop("spell")
    )


def trace_end_s(source: Source) -> int | None:
    """Return the last moment in any row of the trace, including jobs."""
    return last_moment([source.raw["node_event"], *([] if source.placements is None else [source.placements])])


def _unit_columns(has_clusters: bool) -> dict[str, pl.Expr]:
    """Return unit_id, node and group of the nodes; if the trace has several clusters, a unit's name has its cluster."""
    unit_id = pl.format("{}:{}", "cluster", "node") if has_clusters else pl.col("node")
    return {"unit_id": unit_id, "node": pl.col("node"), "group": pl.when(pl.lit(has_clusters)).then("cluster")}


FORMAT = Format(outage_records=outage_records, exposure=exposure)
