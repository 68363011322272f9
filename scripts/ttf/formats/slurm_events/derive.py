"""Node events of Slurm -> records of outages, and the time in which nodes were watched.

Slurm writes a row when a node becomes unusable: down, failing, or drained (asked to drain *and* empty). Seen on Slurm
22.05 and in the source of 26.11:
- An open row ends `Unknown`, and a later dump has it closed: cluster, node and start tell rows apart. Another row of
  the node closes it too.
- A new state or reason while down closes the row and opens another in the same second. So do, for all nodes at once,
  new nodes or resources of the cluster: false ends and starts. Rows of a node that touch are one record here.
- The first reason is the symptom ("Not responding"), a later one often the cause.
- User is Slurm's own also where a person drained a node with jobs on it: what Slurm itself writes is told by its words.
- After a cold start of the controller every node has a row, state UNK and reason cold-start, until it is heard of.
- Not all rows are failures, or outages at all: the rules in config/outage_causes.yaml say which.
"""

import polars as pl
from ttf.engine.errors import StudyError
from ttf.formats.protocol import Format, Source
from ttf.formats.sacct.hostlist import node_lists
from ttf.records.jobs import last_moment
from ttf.records.outages.exposure import watched

# What Slurm writes by itself, from the beginning of a reason on, in any case of letters: kind -> pattern.
KINDS = {
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
    # As Slurm adds it to the reason given for the reboot.
    "Reboot": r"(?:^|: )reboot (?:asap|requested|issued|complete)",
    "Registration": r"^(?:cold-start|first registration|node-update)$",
    "Power saving": r"^power(?:ed|ing)? ?(?:down|up|save)",
    "Future": r"^(?:future|set to state=future)$",
}
BY_A_PERSON = "Set by a person"
# Of the reasons of one outage these say least of its cause: symptoms, and what is no failure at all.
SYMPTOMS = ("Not responding", "Unexpectedly rebooted")
NO_FAILURES = ("Reboot", "Registration", "Power saving", "Future")
# Word of a state -> level, the first that is found. What follows a word (`*`, `$`, `^` ...) is no state by itself.
LEVELS = {"MAINT": "maint", "FAIL": "fail", "DRAIN|DRNG": "drained", "DOWN": "down", "BOOT": "reboot"}
LEVELS |= {"POW": "powered down", "FUT": "future", "INVAL": "invalid", "UNK": "unknown"}
# The same by the bits of StateRaw (slurm.h), where a dump has no State; the low four are the base state.
BITS = {0x8000: "maint", 0x2000: "fail", 0x200: "drained", 0x110000: "reboot", 0x1000: "powered down"}
BITS |= {0x400000: "invalid"}
BASE = {0: "unknown", 1: "down", 6: "future"}
REGISTERED = r"(?i)registered tres"


def outage_records(source: Source) -> pl.DataFrame:
    """A row per maximal run of rows of a node that touch, with RECORD_COLUMNS and extras, by node and time.

    level: down, drained, fail, maint, reboot ... class: the kind of reason (KINDS, or BY_A_PERSON); cause: the reason
    in Slurm's or the person's words: the last one that is more than a symptom. Extras: symptom: the first reason;
    user; rows: how many rows it was merged of.
    """
    rows = node_rows(source)
    last_seen = pl.coalesce("end_s", "seen_until_s")
    so_far = last_seen.cum_max().shift().over("unit_id")
    rows = rows.with_columns(record=(pl.col("start_s") > so_far).fill_null(True).cum_sum())
    kind = pl.col("class")
    # What begins while the controller has yet to hear of the node, after its cold start, begins when it has heard.
    is_told = (kind != "Registration").fill_null(True)
    rows = rows.filter((is_told.cum_sum().over("record") > 0) | ~is_told.any().over("record"))
    says = pl.when(pl.col("cause").is_null()).then(0).when(kind.is_in(NO_FAILURES)).then(1)
    says = says.when(kind.is_in(SYMPTOMS)).then(2).otherwise(3)
    rows = rows.with_columns(says=says)
    says_most = pl.col("says") == pl.col("says").max()
    return (
        rows.group_by("record", maintain_order=True)
        .agg(
            pl.col("unit_id", "node", "group").first(),
            pl.col("start_s").min(),
            end_s=pl.when(pl.col("end_s").null_count() == 0).then(pl.col("end_s").max()),
            seen_until_s=pl.coalesce("end_s", "seen_until_s").max(),
            **{name: pl.col(name).filter(says_most).last() for name in ("level", "class", "cause", "user")},
            symptom=pl.col("cause").drop_nulls().first(),
            rows=pl.len().cast(pl.Int64),
        )
        .drop("record")
    )


def node_rows(source: Source) -> pl.DataFrame:
    """The rows of nodes, each once, by unit and time: unit_id, node, group, start_s, end_s, level, class, cause, user.

    An open row ends where another of the node begins; else end_s is blank, and seen_until_s the last moment known: of
    the trace where the last dump of the cluster still has the row, else of the dump that has it.
    """
    every = source.raw["node_event"].collect()
    several = every["cluster"].drop_nulls().n_unique() > 1
    latest = pl.max_horizontal("start_s", "end_s").max()
    rows = every.filter(pl.col("node").is_not_null()).with_columns(pl.col("cluster").fill_null(""))
    rows = rows.with_columns(dumped_s=latest.over("cluster", "file"))
    is_last = pl.col("dumped_s") == pl.col("dumped_s").max().over("cluster")
    seen = pl.when(is_last).then(pl.lit(trace_end_s(source), pl.Int64)).otherwise("dumped_s")
    told = ("state", "state_raw", "reason", "user")
    once = (
        rows.with_columns(seen_until_s=seen)
        .sort("cluster", "node", "start_s", "dumped_s", "file", "line")
        .group_by("cluster", "node", "start_s", maintain_order=True)
        .agg(pl.col("end_s", "seen_until_s").max(), pl.col(told).drop_nulls().last())
    )
    following = pl.col("start_s").shift(-1).over("cluster", "node")
    reason = pl.col("reason").str.strip_chars()
    reason = pl.when(reason != "").then(reason)
    return once.select(
        unit_id=unit("cluster", "node", several),
        node="node",
        group=pl.when(pl.lit(several)).then("cluster"),
        start_s="start_s",
        end_s=pl.coalesce("end_s", following),
        seen_until_s="seen_until_s",
        level=level(),
        **{"class": kind_of(reason)},
        cause=reason,
        user="user",
    )


def kind_of(reason: pl.Expr) -> pl.Expr:
    """The kind of each reason, blank where there is none."""
    kinds = (pl.when(reason.str.contains(f"(?i){pattern}")).then(pl.lit(kind)) for kind, pattern in KINDS.items())
    return pl.coalesce(*kinds, pl.when(reason.is_not_null()).then(pl.lit(BY_A_PERSON)))


def level() -> pl.Expr:
    """The state in one word: by `state`, else by the bits in `state_raw`."""
    text, bits = pl.col("state").str.to_uppercase(), _number("state_raw")
    words = [pl.when(text.str.contains(word)).then(pl.lit(name)) for word, name in LEVELS.items()]
    flags = [pl.when((bits & flag) > 0).then(pl.lit(name)) for flag, name in BITS.items()]
    bases = [pl.when((bits & 15) == base).then(pl.lit(name)) for base, name in BASE.items()]
    return pl.coalesce(*words, pl.when(text.is_null()).then(pl.coalesce(*flags, *bases)), text.str.to_lowercase())


def _number(column: str) -> pl.Expr:
    text = pl.col(column).str.strip_chars().str.to_lowercase()
    hexadecimal = text.str.strip_prefix("0x").str.to_integer(base=16, strict=False)
    return pl.when(text.str.starts_with("0x")).then(hexadecimal).otherwise(text.cast(pl.Int64, strict=False))


def exposure(source: Source) -> pl.DataFrame:
    """When each node was watched: unit_id, node, group, from_s, until_s.

    By the cluster's own events: a node is one of it from the start of a registration that lists it to its end, or to
    the last moment of the trace. Else by `nodes` and `window_days` of the registry: the nodes that have a name, and so
    many others. Else by the jobs, where there are any: the nodes that they ran on, and those with an event meanwhile,
    from the first moment of any job to the last of the trace.
    Raises StudyError where none of these tells, a hostlist cannot be read, or more nodes have events than `nodes` says.
    """
    registered = registered_nodes(source)
    if registered.height:
        return registered
    rows = node_rows(source)
    first, last = rows["start_s"].min(), trace_end_s(source)
    seen = rows.select("unit_id", "node", "group")
    if source.placements is not None:
        first = source.placements.select(pl.col("start_s").min()).collect().item()
        of_jobs = source.placements.select(pl.col("node").unique()).collect().with_columns(unit_id="node")
        meanwhile = rows.filter(pl.coalesce("end_s", "seen_until_s") >= first).select("unit_id", "node", "group")
        seen = pl.concat([meanwhile, of_jobs], how="diagonal")
    elif "nodes" not in source.meaning:
        raise StudyError(
            "the node events do not say which nodes there were: no row is a registration of the cluster. Add a dump of "
            "sacctmgr -P show event All_Time Event=Cluster format=Cluster,ClusterNodes,Start,End,TRES,Reason, or say "
            "nodes in the trace's entry in the registry."
        )
    if "nodes" in source.meaning:
        return watched(seen, source.meaning, first or 0, last or 0)
    return watched(seen, {"nodes": seen["unit_id"].n_unique()}, first or 0, last or 0)


def registered_nodes(source: Source) -> pl.DataFrame:
    """The same by the cluster's own events alone; no rows where a dump has none."""
    every = source.raw["node_event"].collect()
    several = every["cluster"].drop_nulls().n_unique() > 1
    is_registration = pl.col("reason").str.contains(REGISTERED).fill_null(True)
    once = (
        every.filter(pl.col("node").is_null() & pl.col("cluster_nodes").is_not_null() & is_registration)
        .with_columns(pl.col("cluster").fill_null(""))
        .sort("cluster", "start_s", "file", "line")
        .group_by("cluster", "start_s", maintain_order=True)
        .agg(pl.col("end_s").max(), pl.col("cluster_nodes").last())
    )
    following = pl.col("start_s").shift(-1).over("cluster")
    once = once.with_columns(until_s=pl.coalesce("end_s", following, pl.lit(trace_end_s(source), pl.Int64)))
    once = once.hstack(node_lists(once["cluster_nodes"]))
    if (unread := once["node_list_reason"].drop_nulls()).len():
        raise StudyError(
            f"Cluster Nodes of the node events: {unread[0].removeprefix('NodeList ')}. Print the dump with -P."
        )
    listed = once.select("cluster", "start_s", "until_s", node="node_list").explode("node")
    listed = listed.select(
        unit_id=unit("cluster", "node", several),
        node="node",
        group=pl.when(pl.lit(several)).then("cluster"),
        from_s="start_s",
        until_s="until_s",
    ).sort("unit_id", "from_s")
    is_first = (pl.col("from_s") > pl.col("until_s").cum_max().shift().over("unit_id")).fill_null(True)
    return (
        listed.group_by("unit_id", "node", "group", is_first.cum_sum().alias("spell"), maintain_order=True)
        .agg(pl.col("from_s").min(), pl.col("until_s").max())
        .drop("spell")
    )


def trace_end_s(source: Source) -> int | None:
    """The last moment that any row of the trace names, of jobs too."""
    return last_moment([source.raw["node_event"], *([] if source.placements is None else [source.placements])])


def unit(cluster: str, node: str, several: bool) -> pl.Expr:
    """The name of a unit: the node, with its cluster before it where a trace has several."""
    return pl.format("{}:{}", cluster, node) if several else pl.col(node)


FORMAT = Format(outage_records=outage_records, exposure=exposure)
