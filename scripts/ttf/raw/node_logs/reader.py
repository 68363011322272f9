"""Read the logs of nodes: errors by the rules, when each node's log was written, and an account of every line.

A block is reduced at once to what is needed of it, so that the memory does not grow with the log.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from ttf.engine.errors import StudyError
from ttf.raw.line_columns import parse_hours, read_lines, seconds_in_hour
from ttf.raw.node_logs.event_tables import (
    has_event_lines,
    parse_csv,
    parse_fields,
    parse_json,
    read_times,
)
from ttf.raw.node_logs.layouts import Layout, decode_head, describe_unread_form, detect_layout, parse_csv_header
from ttf.raw.node_logs.line_blocks import Block, read_blocks
from ttf.raw.node_logs.merging import MergedRows, merge_close
from ttf.raw.node_logs.node_names import NodeNames
from ttf.raw.node_logs.reduced_blocks import ReducedBlock, copy_block, join_years, list_lines, reduce_block
from ttf.raw.node_logs.rules import (
    ERROR_COLUMNS,
    Rules,
    canonical_codes,
    describe_own_codes,
    find_errors,
    join_messages,
)
from ttf.raw.node_logs.text_lines import read_messages, strip_uptime
from ttf.raw.raw_files import ARCHIVES, PACKED, read_unpacked

# Kind of line -> (severity, sentence). Each line that is not blank is of one of these.
KINDS = {
    "picked": ("info", "lines of errors that a rule picks"),
    "unmatched": ("info", "lines of which no rule picks an error"),
    "continued": ("info", "lines without a time that continue the line before"),
    "note": ("info", "headers, lines of the journal itself, and empty lists of events"),
    "recovered": ("info", "events that report that something is well again"),
    "no_layout": ("error", "lines of files in no known layout: print them again, see docs/your-data.md"),
    "no_time": ("error", "lines whose time, or whose form, cannot be read"),
    "no_node": ("error", "lines that name no node"),
    "before_trace": ("warning", "lines from before the trace"),
    "after_trace": ("warning", "lines from after the trace"),
    "unknown_node": ("warning", "lines of nodes that the trace does not name"),
}
# What is said of lines besides.
REMARKS = {
    "nul": ("info", "lines with NULs, which are removed"),
    "undecodable": (
        "info",
        "lines with bytes or escapes that are no character, which are replaced",
    ),
    "cut": ("warning", "lines that are too long, of which only the start is read"),
    "other_name": ("info", "lines that name their node in another form, such as its full name"),
    "errors_only": (
        "info",
        "lines of logs that hold little but errors: their silence is no gap, and all nodes are watched",
    ),
}
FIRST_LINES = 5
MOST_JSON_BYTES = 50_000_000
# Polars searches the texts of a block on one core.
THREADS = 2
# Kinds of lines that cannot be read.
REJECTED = ("no_layout", "no_time", "no_node")
EVENT_COLUMNS = {"node": pl.String, **ERROR_COLUMNS, "time_s": pl.Int64, "last_s": pl.Int64, "lines": pl.Int64}
SPAN_COLUMNS = {"node": pl.String, "start_s": pl.Int64, "end_s": pl.Int64}


@dataclass
class Account:
    """rows: kind -> number of lines. first_lines: kind -> the first of them, as file and numbers."""

    rows: dict[str, int] = field(default_factory=dict)
    first_lines: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    def add(self, kind: str, rows: int, label: str, lines: list[int]) -> None:
        if rows:
            self.rows[kind] = self.rows.get(kind, 0) + rows
            first = self.first_lines.setdefault(kind, [])
            first += [(label, line) for line in lines[: FIRST_LINES - len(first)]]


@dataclass
class NodeLogs:
    """errors: EVENT_COLUMNS, merged within merge_s. spans: SPAN_COLUMNS. boots, job_starts: node, time_s (and job).

    event_spans: the span of the files that hold only events, so that their silence says nothing; no row without any.
    quiet_nodes: nodes that such a file names in a row without an error.
    rejected: line and kind of each line that cannot be read, if LogOptions asks for them.
    """

    account: Account
    errors: pl.DataFrame
    spans: pl.DataFrame
    boots: pl.DataFrame
    job_starts: pl.DataFrame
    event_spans: pl.DataFrame
    quiet_nodes: list[str] = field(default_factory=list)
    rejected: pl.DataFrame = field(default_factory=pl.DataFrame)


@dataclass(frozen=True)
class LogOptions:
    """zone: of times without one. window: start and end of the trace in seconds, None if it has no other records.

    merge_s, gap_s: as in the configuration. has_rejected: whether to list the lines that cannot be read. end_s: a time
    after the last line of a log without years; None: the end of the window. boots: node -> when it started, for logs
    whose times count from then; that of the empty name is of all nodes.
    """

    rules: Rules
    zone: str
    window: tuple[int, int] | None
    nodes: NodeNames
    merge_s: int
    gap_s: int
    has_rejected: bool = False
    end_s: int | None = None
    boots: Mapping[str, int] = field(default_factory=dict)


def name_node(path: Path) -> str:
    """Return the node after which a file is named: gpu17 of gpu17.log and dmesg-gpu17.txt.gz."""
    name = path.name
    for ending in (*ARCHIVES, *PACKED, ".txt", ".log", ".json", ".jsonl", ".dmesg", ".journal", ".out"):
        name = name.removesuffix(ending)
    for word in ("dmesg", "journal", "kern", "syslog", "messages"):
        name = name.removeprefix(f"{word}-").removeprefix(f"{word}_").removesuffix(f"-{word}").removesuffix(f"_{word}")
    return name


def read_node_logs(files: list[Path], options: LogOptions) -> NodeLogs:
    """Read the logs. Raises StudyError if no file has a known layout."""
    reading = _Reading(options)
    layouts = {file: _read_layout(file, options.boots) for file in files}
    if files and not any(layouts.values()):
        raise StudyError(
            f"node_logs: {files[0]}: not the log of a node in a known layout{_describe_form(files[0])}. Write it "
            "with journalctl -k -o short-iso, or dmesg -T; or as CSV with the columns node, time, code or message. See "
            "docs/your-data.md."
        )
    for file in files:
        reading.read(file, layouts[file])
    return reading.finish()


def read_node_log(file: Path, options: LogOptions) -> NodeLogs:
    """Read one log. Raises StudyError for a text that has to be printed again."""
    reading, layout = _Reading(options), _read_layout(file, options.boots)
    if layout is None and (problem := _describe_form(file)):
        raise StudyError(f"{file}{problem}.")
    reading.read(file, layout)
    return reading.finish()


def _read_layout(file: Path, boots: Mapping[str, int]) -> Layout | None:
    layout = detect_layout(_read_head(file)) if file.stat().st_size else None
    return None if layout and layout.needs_boot and not boots else layout


def _read_head(file: Path) -> bytes:
    chunks = read_unpacked(file, size=1 << 16)
    head = next(chunks, b"")
    chunks.close()
    return head[: 1 << 16]


def _describe_form(file: Path) -> str:
    words = describe_unread_form(_read_head(file)) if file.stat().st_size else ""
    return f": {words}" if words else ""


class _Reading:
    """The state while logs are read: frames that are merged again when they grow."""

    def __init__(self, options: LogOptions) -> None:
        self.options, self.account = options, Account()
        self.errors, self.spans = MergedRows(EVENT_COLUMNS, options.merge_s), MergedRows(SPAN_COLUMNS, options.gap_s)
        self.event_spans = MergedRows(SPAN_COLUMNS, 1 << 40)
        self.event_errors = MergedRows(EVENT_COLUMNS, options.merge_s)
        self.quiet_nodes: set[str] = set()
        self.text_lines = self.unmatched_lines = 0
        self.boots: list[pl.DataFrame] = []
        self.job_starts: list[pl.DataFrame] = []
        self.rejected = [pl.DataFrame(schema={"line": pl.Int64, "kind": pl.String})]

    def finish(self) -> NodeLogs:
        spans = self.spans.merge()
        errors = self.errors.merge()
        # A log with more errors than other lines was filtered, as by grep. A line that is repeated a million times is
        # one error.
        if errors.height > self.unmatched_lines:
            self.account.add("errors_only", self.text_lines, "", [])
            self.event_spans.add(
                spans.select(node=pl.lit(""), start_s=pl.col("start_s").min(), end_s=pl.col("end_s").max()).head(1)
            )
        boots = pl.concat([pl.DataFrame(schema={"node": pl.String, "time_s": pl.Int64}), *self.boots])
        schema = {"node": pl.String, "time_s": pl.Int64, "job": pl.String}
        job_starts = pl.concat([pl.DataFrame(schema=schema), *self.job_starts])
        return NodeLogs(
            self.account,
            merge_close(pl.concat([errors, self.event_errors.merge()]), self.options.merge_s).sort(
                "time_s", "node", "code", "gpu"
            ),
            spans.sort("node", "start_s"),
            boots.unique().sort("node", "time_s"),
            job_starts.unique().sort("node", "time_s", "job"),
            self.event_spans.merge().sort("node", "start_s"),
            sorted(self.quiet_nodes),
            pl.concat(self.rejected).sort("line", maintain_order=True),
        )

    def read(self, file: Path, layout: Layout | None) -> None:
        if not file.stat().st_size:
            return
        if layout is None:
            for block in read_blocks(file):
                self._account_faults(file, block)
                self._count_rows(file, "no_layout", list_lines(block))
        elif layout.name in ("text", "journal_json"):
            self._read_text(file, layout)
        else:
            add = self._add_records if layout.name.startswith("log_") else self._add_events
            for rows in self._read_rows(file, layout):
                add(file, layout, rows)

    def _read_document(self, file: Path) -> str:
        lines, size = list[str](), 0
        for block in read_blocks(file, MOST_JSON_BYTES):
            self._account_faults(file, block)
            lines += block.lines.to_list()
            size += int(block.lines.str.len_bytes().sum())
            if size > MOST_JSON_BYTES:
                raise StudyError(
                    f"node_logs: {file}: a JSON file of more than 50 MB. Write an event on each line: jq -c '.[]'."
                )
        return "\n".join(lines)

    def _read_rows(self, file: Path, layout: Layout) -> Iterator[pl.DataFrame]:
        """Yield the events or lines in the rows of a table, in records or in JSON documents."""
        names, is_log = list[str](), layout.name.startswith("log_")
        node = None if is_log and layout.has_nodes else name_node(file)
        if layout.name == "log_fields":
            text = self._read_document(file)
            records = parse_fields(text)
            n_lines = sum(not line.isspace() for line in text.split("\n") if line)
            self.account.add("continued", n_lines - records.height, file.name, [])
            yield records
            return
        if not layout.name.endswith("csv") and not has_event_lines(decode_head(_read_head(file))):
            yield parse_json([(1, self._read_document(file))], node, is_log)
            return
        for block in read_blocks(file):
            self._account_faults(file, block)
            rows = list_lines(block)
            if layout.name.endswith("csv"):
                if not names and rows.height:
                    names, rows = parse_csv_header(rows["text"][0], layout.delimiter), rows[1:]
                    self.account.add("note", 1, file.name, [1])
                yield parse_csv(rows, names, layout.delimiter)
            else:
                yield parse_json(rows.select("line", "text").iter_rows(), node, is_log)

    def _read_text(self, file: Path, layout: Layout) -> None:
        """Reduce blocks on two threads, and add them in their order."""
        pattern, fallback = self.options.rules.any_pattern, name_node(file)
        reduced: deque[Future[ReducedBlock]] = deque()
        pending: list[ReducedBlock] = []

        def add_first() -> None:
            part = reduced.popleft().result()
            for kind, rows in part.unused.items():
                self._count_rows(file, kind, rows)
            if layout.clock == "yearless":
                pending.append(copy_block(part))
            else:
                self._add(file, layout, part.groups, part.picks)

        with ThreadPoolExecutor(THREADS) as pool:
            for block in read_blocks(file):
                self._account_faults(file, block)
                reduced.append(pool.submit(reduce_block, block, layout, pattern, fallback, self.options.zone))
                if len(reduced) > THREADS:
                    add_first()
            while reduced:
                add_first()
        if pending:
            self._add_yearless(file, layout, pending)

    def _account_faults(self, file: Path, block: Block) -> None:
        for code, count in block.counts.items():
            self.account.add(code, count, file.name, block.faults[code])

    def _count_rows(self, file: Path, kind: str, rows: pl.DataFrame) -> None:
        count = int(rows["lines"].sum()) if "lines" in rows.columns else rows.height
        self.account.add(kind, count, file.name, rows["line"].head(FIRST_LINES).to_list())
        if self.options.has_rejected and kind in REJECTED:
            self.rejected.append(rows.select("line", kind=pl.lit(kind)))

    # Lines of text ------------------------------------------------------------------------------------------

    def _add_yearless(self, file: Path, layout: Layout, pending: list[ReducedBlock]) -> None:
        """Add the lines of a file without years: the last line is in the last year before the end of trace or logs."""
        end_s = self.options.end_s or (self.options.window or (None, None))[1]
        if end_s is None:
            raise StudyError(
                f"node_logs: {file}: its times have no year, and there are no jobs that would tell it. Write the log "
                "with years, journalctl -k -o short-iso, or set node_log_end to the day on which it ended."
            )
        pending = join_years(pending, layout.head)
        picks = pl.concat(part.picks for part in pending)
        # Two blocks may have lines of one hour.
        groups = pl.concat(part.groups for part in pending)
        groups = groups.group_by("node", "hour", "year").agg(
            lines=pl.col("lines").sum(),
            first=pl.col("first").min(),
            start=pl.col("start").min(),
            end=pl.col("end").max(),
        )
        groups = groups.sort("first")
        if not groups.height:
            return
        last = groups.sort("year", maintain_order=True)[-1]
        final_year = pl.from_epoch(pl.Series([end_s])).dt.year()[0]
        anchors = range(final_year, final_year - 12, -1)
        day = 86_400

        def ends_in_time(year: int) -> bool:
            start = parse_hours(last["hour"], layout.head, self.options.zone, year)[0]
            return start is not None and start <= end_s + day

        anchor = next((year for year in anchors if ends_in_time(year)), final_year)
        for year in groups["year"].unique().sort():
            is_year = pl.col("year") == year
            self._add(file, layout, groups.filter(is_year), picks.filter(is_year), anchor + year - last["year"][0])

    def _add(
        self, file: Path, layout: Layout, groups: pl.DataFrame, picks: pl.DataFrame, year: int | None = None
    ) -> None:
        """Add lines whose hours can now be placed: to the account, the spans, the errors, boots and job starts."""
        hours = groups.select("hour").unique(maintain_order=True)
        hours = hours.with_columns(hour_s=parse_hours(hours["hour"], layout.head, self.options.zone, year))
        groups = groups.join(hours, on="hour", how="left", maintain_order="left")
        if layout.clock == "uptime":
            boot = pl.col("node").replace_strict(
                self.options.boots, default=self._find_boot(layout), return_dtype=pl.Int64
            )
            groups = groups.with_columns(hour_s=pl.col("hour_s") + boot)
        groups = self._add_name_and_kind(groups, "hour_s")
        picks = picks.join(groups.select("node", "hour", "hour_s", "kind", "name"), on=["node", "hour"], how="left")
        picks = picks.filter(pl.col("kind").is_null()).sort("line")
        time_s = pl.col("hour_s") + seconds_in_hour("minute")
        picks = picks.with_columns(message=read_messages(picks["text"], layout), time_s=time_s)
        for kind in KINDS:
            self._account_groups(file, kind, groups.filter(pl.col("kind") == kind))
        inside = groups.filter(pl.col("kind").is_null())
        self._add_lines(file, picks, int(inside["lines"].sum()))
        self._account_groups(file, "other_name", inside.filter(pl.col("name") != pl.col("node")))
        self.spans.add(
            inside.select(
                node="name",
                start_s=pl.col("hour_s") + seconds_in_hour("start"),
                end_s=pl.col("hour_s") + seconds_in_hour("end"),
            )
        )

    def _add_lines(self, file: Path, picks: pl.DataFrame, n_lines: int) -> None:
        """Add the errors, boots and job starts in n_lines lines. picks: those that the rules may pick."""
        messages = join_messages(picks, self.options.rules, self.options.merge_s)
        messages = messages.with_columns(find_errors(messages["message"], self.options.rules))
        errors = messages.drop_nulls("code")
        n_picked = int(errors["lines"].sum())
        self._count_rows(file, "picked", errors)
        self.text_lines += n_lines
        self.unmatched_lines += n_lines - n_picked
        self.account.add("unmatched", n_lines - n_picked, file.name, [])
        self._add_errors(errors, self.errors)
        self._add_marks(picks)

    def _find_boot(self, layout: Layout) -> int | None:
        return self.options.boots.get("", layout.boot_s)

    def _account_groups(self, file: Path, kind: str, groups: pl.DataFrame) -> None:
        self.account.add(kind, int(groups["lines"].sum()), file.name, groups["first"].head(FIRST_LINES).to_list())

    def _add_name_and_kind(self, groups: pl.DataFrame, start_s: str) -> pl.DataFrame:
        """Add name, the node as the trace names it, and kind: why the lines are not used, null if they are."""
        names = self.options.nodes.match(groups["node"])
        problems = {"no_time": pl.col(start_s).is_null()}
        if self.options.window is not None:
            start, end = self.options.window
            problems |= {"before_trace": pl.col(start_s) + 3600 <= start, "after_trace": pl.col(start_s) > end}
        problems |= {"no_node": pl.col("node").is_null(), "unknown_node": pl.col("name").is_null()}
        kind = pl.coalesce(pl.when(problem).then(pl.lit(name)) for name, problem in problems.items())
        return groups.with_columns(name=names).with_columns(kind=kind)

    def _add_errors(self, errors: pl.DataFrame, merged: MergedRows) -> None:
        merged.add(errors.with_columns(node="name").select(*EVENT_COLUMNS))

    def _add_marks(self, picks: pl.DataFrame) -> None:
        rules, message = self.options.rules, pl.col("message")
        for pattern in rules.boot:
            self.boots.append(picks.filter(message.str.contains(pattern)).select(node="name", time_s="time_s"))
        for pattern in rules.job_start:
            job = message.str.extract_groups(pattern).struct.field("job")
            starts = picks.select(node="name", time_s="time_s", job=job).drop_nulls()
            self.job_starts.append(starts)

    # Events -------------------------------------------------------------------------------------------------

    def _add_records(self, file: Path, layout: Layout, records: pl.DataFrame) -> None:
        """Add lines of a log, as rows of the SCHEMA of event_tables."""
        inner = read_lines(records["message"].fill_null(""), layout.head, self.options.zone)
        message = pl.when(pl.col("message").is_not_null()).then(strip_uptime(inner["rest"]))
        rows = records.with_columns(node=pl.coalesce(inner["node"], "node"), message=message)
        rows, _ = self._place_rows(file, layout, rows)
        picks = rows.filter(pl.col("message").str.contains(self.options.rules.any_pattern))
        self._add_lines(file, picks, rows.height)
        self.spans.add(rows.select(node="name", start_s="time_s", end_s="time_s"))

    def _place_rows(self, file: Path, layout: Layout, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
        """Account for rows; return those of use with name and time_s, and the nodes of notes and recoveries."""
        rows = rows.with_columns(time_s=read_times(rows["time"], self.options.zone, self._find_boot(layout)))
        rows = self._add_name_and_kind(rows, "time_s").with_columns(kind=pl.coalesce("own_kind", "kind"))
        for name in KINDS:
            self._count_rows(file, name, rows.filter(pl.col("kind") == name))
        quiet_nodes = rows.filter(pl.col("kind").is_in(["note", "recovered"]))["name"]
        rows = rows.filter(pl.col("kind").is_null())
        self._count_rows(file, "other_name", rows.filter(pl.col("name") != pl.col("node")))
        return rows, quiet_nodes

    def _add_events(self, file: Path, layout: Layout, events: pl.DataFrame) -> None:
        rules = self.options.rules
        rows, quiet_nodes = self._place_rows(file, layout, events)
        rows = rows.with_columns(last_s="time_s", lines=pl.lit(1, pl.Int64))
        by_rule = find_errors(rows["message"], rules).rename(lambda name: f"rule_{name}")
        rows = rows.with_columns(by_rule, code=canonical_codes(rows["code"], rules))
        # DCGM names an error in its own words, and the XID in its message: a kernel's log has the XID.
        is_xid = pl.col("code").str.starts_with("DCGM_FR_") & pl.col("rule_code").str.starts_with("XID ")
        is_same = pl.col("code") == pl.col("rule_code")
        rows = rows.with_columns(
            code=pl.when(is_xid).then("rule_code").otherwise("code"),
            severity=pl.coalesce("severity", pl.when(is_same).then("rule_severity")),
        )
        own = describe_own_codes(rows["code"], rows["gpu"], rows["severity"], rules)
        candidates = pl.concat([own, by_rule], how="horizontal")
        chosen = {n: pl.when(pl.col("code").is_not_null()).then(n).otherwise(f"rule_{n}") for n in ERROR_COLUMNS}
        # A message may name the GPU of an event whose row does not.
        gpu = pl.when(pl.col("gpu") == "").then(pl.col("rule_gpu").fill_null("")).otherwise("gpu")
        rows = rows.with_columns(candidates.select(**chosen | {"gpu": gpu}))
        errors, others = rows.filter(pl.col("code").is_not_null()), rows.filter(pl.col("code").is_null())
        self._count_rows(file, "picked", errors)
        self._count_rows(file, "unmatched", others)
        self._add_errors(errors, self.event_errors)
        self._add_marks(rows)
        self.quiet_nodes |= {*pl.concat([quiet_nodes, others["name"]]).drop_nulls()}
        self.event_spans.add(
            rows.select(node=pl.lit(""), start_s=pl.col("time_s").min(), end_s=pl.col("time_s").max()).head(1)
        )
