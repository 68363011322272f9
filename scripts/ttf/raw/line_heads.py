"""Detect the head of a log's lines: labels, times, hosts and programs, in the order in which the lines have them.

A head is taken from the start of the lines piece by piece, as long as most of the first thousand lines have the same
piece; what follows is the rest. Plain Python, so that planning can ask. `ttf.raw.line_columns` splits columns of lines.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple


class Form(NamedTuple):
    """pattern: of the text, with the groups hour and minute, and zone, year, number, node or rank.

    clock: dated, yearless, uptime (seconds since a start), daytime (without a day), or empty for what is no time.
    hour_format: of the group hour, with blanks for other separators and numbers of months.
    is_wrapped: whether it may be in brackets, or before a separator.
    """

    pattern: str
    clock: str = ""
    hour_format: str = ""
    is_wrapped: bool = False


MOST_LINES, MOST_PIECES, _MOST_PATTERNS = 1000, 8, 6
# Share of lines that have to have a piece: of all lines, for time and host; and of those with the time, behind it.
_FIRST_SHARE, _LATER_SHARE = 0.5, 0.9
_NAME = "[A-Za-z0-9][A-Za-z0-9._-]*"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH, _WEEKDAY = f"(?:{'|'.join(MONTHS)})", "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) "
_BLANK = "(?: |$)"
_MINUTE, _FRACTION = ":(?P<minute>[0-9]{2}:[0-9]{2})", "(?:[.,][0-9]{1,9})?"
_OFFSET = "Z|[+-][0-9]{2}:?[0-9]{2}"
_DAY = "[0-9]{4}[/-][0-9]{2}[/-][0-9]{2}"
_MONTH_DAY = f"{_MONTH} [ 0-9][0-9]"
_ZONE = "(?P<zone>[A-Z]{3,5}|[+-][0-9]{2}(?::?[0-9]{2})?)"


def _time(hour: str, after: str, hour_format: str, clock: str = "dated", before: str = "") -> Form:
    return Form(f"{before}(?P<hour>{hour}){_MINUTE}{after}", clock, hour_format, is_wrapped=True)


# Only ASCII classes, and no step back: any other pattern takes ten times as long. The most special first.
TIMES = {
    # dmesg --time-format=iso
    "dmesg_iso": _time(f"{_DAY}[T ][0-9]{{2}}", f",[0-9]{{6}}(?P<zone>{_OFFSET})?", "%Y %m %d %H"),
    "iso_blank": _time(
        f"{_DAY}[T ][0-9]{{2}}", f"{_FRACTION} (?P<zone>UTC|GMT|[+-][0-9]{{2}}:?[0-9]{{2}})", "%Y %m %d %H"
    ),
    # journalctl -o short-iso and short-iso-precise, and files of rsyslog with ISO times.
    "iso": _time(f"{_DAY}[T ][0-9]{{2}}", f"{_FRACTION}(?P<zone>{_OFFSET})?", "%Y %m %d %H"),
    # journalctl -o short-full
    "full": _time(f"{_DAY} [0-9]{{2}}", f"{_FRACTION} {_ZONE}", "%Y %m %d %H", before=_WEEKDAY),
    # dmesg -T
    "ctime": _time(f"{_MONTH_DAY} [0-9]{{2}}", " (?P<year>[0-9]{4})", "%m %d %H", before=_WEEKDAY),
    "date": _time(f"{_MONTH_DAY} [0-9]{{2}}", f" {_ZONE} (?P<year>[0-9]{{4}})", "%m %d %H", before=_WEEKDAY),
    "month_year": _time(f"{_MONTH} [ 0-9]?[0-9],? [0-9]{{4}}(?: @)? [0-9]{{2}}", _FRACTION, "%m %d %Y %H"),
    "syslog": _time(f"{_MONTH_DAY} [0-9]{{2}}", _FRACTION, "%m %d %H", "yearless"),
    "american": _time("(?:0[0-9]|1[0-2])/[0-9]{2}/[0-9]{4},? [0-9]{2}", _FRACTION, "%m %d %Y %H"),
    "european": _time("[0-9]{2}/[0-9]{2}/[0-9]{4},? [0-9]{2}", _FRACTION, "%d %m %Y %H"),
    "web": _time(f"[0-9]{{2}}/{_MONTH}/[0-9]{{4}}:[0-9]{{2}}", " (?P<zone>[+-][0-9]{4})", "%d %m %Y %H"),
    "compact": _time("20[0-9]{2}[01][0-9][0-3][0-9][T ][0-9]{2}", f"{_FRACTION}(?P<zone>{_OFFSET})?", "%Y%m%d %H"),
    "month_slash": _time("[01][0-9]/[0-3][0-9] [0-9]{2}", _FRACTION, "%m %d %H", "yearless"),
    # Google's log library
    "glog": _time("[01][0-9][0-3][0-9] [0-9]{2}", _FRACTION, "%m%d %H", "yearless"),
    # journalctl -o short-unix
    "unix": Form("(?P<number>[0-9]{10})(?:[.][0-9]{1,9}|[0-9]{3}|[0-9]{6}|[0-9]{9})?", "dated", "", is_wrapped=True),
    # dmesg, and journalctl -o short-monotonic and short-delta
    "uptime": Form(r"\[ *(?P<number>[0-9]+)\.[0-9]{6}(?: <[ *0-9.]*>)?\](?: |$)", "uptime"),
    # /dev/kmsg: priority, number, microseconds, flags
    "kmsg": Form("[0-9]+,[0-9]+,(?P<number>[0-9]+)[0-9]{6},[^; ]*;", "uptime"),
    "daytime": _time("[0-2][0-9]", _FRACTION, "%H", "daytime"),
}
_OPENINGS = ("", r"\[", r"\(", "[IWEFD]", r"\[[IWEFD] ", r"\[NeMo [IWEFD] ")
_TAIL = re.compile(r"[\])]?[:,]?(?: [-|](?= ))? ?")
LABELS = {
    "priority": Form("<[0-9]{1,3}>"),
    "version": Form("(?:<[0-9]{1,3}>)?1 "),  # of RFC 5424
    # Facility and level of dmesg --decode and talosctl
    "level": Form("(?:kern|user|daemon|auth|authpriv|syslog|cron|mail|local[0-7]) *: *[a-z]+ *: "),
    "stream": Form("(?:stdout|stderr) [FP](?: |$)"),  # of a container
    "container": Form(r"[A-Za-z][A-Za-z0-9._-]*[_-][0-9]+ +\| "),  # docker compose
    "pod": Form(r"\[pod/[!-Z\\^-~]+\] "),  # kubectl logs --prefix
    "ray": Form(r"(?:\x1b\[[0-9;]*m)?\([A-Za-z_][^)\n]* pid=[0-9]+(?:, ip=[0-9a-f.:]+)?\)(?:\x1b\[[0-9;]*m)? "),
    "mpi": Form(r"\[[0-9]+,(?P<rank>[0-9]+)\](?:<std[a-z]+>)?: ?"),
    "rank": Form(r"\[(?:rank|default|worker)?[ :]?(?P<rank>[0-9]+)\]:?(?: |$)"),  # torchrun
    "task": Form(" *(?P<rank>[0-9]+): "),  # srun --label
    # pdsh and clush
    "label": Form(f"(?P<node>{_NAME}): "),
}
HOSTS = {
    # RFC 5424: node, program, process, kind of message, structured data
    "host_5424": Form(rf"(?P<node>{_NAME}) [!-~]+ [!-~]+ [!-~]+ (?:-|(?:\[[ -Z\\^-~]*\])+)(?: |$)"),
    "host_level": Form(rf"(?P<node>{_NAME}) [a-z0-9]+\.[a-z]+ [A-Za-z(/_][!-9;-Z\\-~]*(?:\[[!-Z\\^-~]*\])?:(?: |$)"),
    # Behind a time of dmesg, the name of a device looks like a node: "usb 1-1: new".
    "host_kernel": Form(rf"(?P<node>{_NAME}) (?:kernel|[A-Za-z(/_][!-9;-Z\\-~]*\[[0-9]+\]):(?: |$)"),
    # Loki's logcli
    "host_labels": Form(
        rf'\{{(?:[^}}]*[ ,])?(?:host|hostname|node|nodename|instance)="(?P<node>{_NAME})[^"]*"[^}}]*\}} '
    ),
    # The node, and the program that wrote the message. Without a program, any word behind a time would be a node.
    "host": Form(rf"(?P<node>{_NAME}) [!-9;-Z\\-~]+(?:\[[!-Z\\^-~]*\])?:(?: |$)"),
}
FORMS = TIMES | LABELS | HOSTS
KERNEL_TIMES = {"dmesg_iso", "ctime", "uptime", "kmsg"}
# These stand before times, and may be taken for words of the rest.
_BEFORE_TIMES = {"container", "pod", "ray", "task", "label"}
_BEFORE_OTHERS = {"version", "label"}
# Words that other programs write behind the time.
_NO_NODE = re.compile(
    "[0-9]+|[a-z]*debug|trace|info|notice|warn(?:ing)?|err(?:or)?|crit(?:ical)?|alert|emerg|fatal|panic|severe|verbose"
    "|stdout|stderr|epoch|step|iter(?:ation)?",
    re.IGNORECASE,
)
_RANK_OF_CLOCK = {"dated": 3, "yearless": 2, "uptime": 1, "daytime": 1}


class Piece(NamedTuple):
    """form: a name of FORMS. pattern: of the form and what is around it; its groups have no numbers yet."""

    form: str
    pattern: str


class LineHead(NamedTuple):
    """The pieces at the start of the lines of a file; without any, the rest is the line."""

    pieces: tuple[Piece, ...] = ()

    @property
    def forms(self) -> list[str]:
        return [piece.form for piece in self.pieces]

    @property
    def time(self) -> int | None:
        """Return the index of the piece with the time: the last of the most complete ones."""
        ranks = [_RANK_OF_CLOCK.get(FORMS[form].clock, 0) for form in self.forms]
        return max((rank, index) for index, rank in enumerate(ranks))[1] if any(ranks) else None

    @property
    def time_form(self) -> Form:
        return Form("") if self.time is None else FORMS[self.forms[self.time]]

    @property
    def clock(self) -> str:
        return self.time_form.clock

    @property
    def has_host(self) -> bool:
        return any(form in HOSTS for form in self.forms)

    @property
    def key_group(self) -> str:
        """Return the group that each line with this head has; empty for a head without a time."""
        return "" if self.time is None else f"{'hour' if self.time_form.hour_format else 'number'}{self.time}"

    def list_groups(self, name: str) -> list[str]:
        """Return the groups for a part such as node, the innermost first."""
        return [f"{name}{i}" for i, piece in reversed([*enumerate(self.pieces)]) if f"(?P<{name}>" in piece.pattern]

    @property
    def patterns(self) -> list[str]:
        """Return patterns of the head, the longest first: lines may lack labels, or what follows time and host."""
        needed = [index for index, form in enumerate(self.forms) if index == self.time or form in HOSTS]
        first, last = (needed[0], needed[-1] + 1) if needed else (0, 1)
        all_bounds = product(range(first + 1), range(len(self.pieces), last - 1, -1))
        numbered = [
            re.sub(r"\(\?P<(\w+)>", rf"(?P<\g<1>{index}>", piece.pattern) for index, piece in enumerate(self.pieces)
        ]
        # A line may end behind its last piece; to look for the end before that takes twice the time.
        inner = [pattern.replace(_BLANK, " ") for pattern in numbered]
        bounds = sorted(all_bounds, key=lambda pair: pair[0] - pair[1])[:_MOST_PATTERNS]
        return ["".join([*inner[start : end - 1], numbered[end - 1]]) for start, end in bounds]


def detect_head(lines: Iterable[str], has_hosts: bool = True) -> LineHead:
    """Return the head of the lines at the start of a file; blank lines are ignored.

    has_hosts: whether the word behind a time may be a node, if a program follows it.
    """
    rests = [line for line in lines if line.strip()][:MOST_LINES]
    n_lines, pieces = len(rests), list[Piece]()
    while rests and len(pieces) < MOST_PIECES:
        piece, remaining = _find_piece(rests, pieces, has_hosts)
        is_first = piece is not None and (piece.form in HOSTS or all(other.form in LABELS for other in pieces))
        least = n_lines * _FIRST_SHARE if is_first else len(rests) * _LATER_SHARE
        if piece is None or len(remaining) <= least:
            break
        pieces.append(piece)
        rests = remaining
    while pieces and pieces[-1].form in _BEFORE_OTHERS:
        pieces.pop()
    return LineHead(tuple(pieces))


def _find_piece(rests: Sequence[str], pieces: Sequence[Piece], has_hosts: bool) -> tuple[Piece | None, list[str]]:
    """Return the piece that most lines start with, and what follows it in these lines."""
    best, best_rests = None, list[str]()
    for name in _list_next_forms([piece.form for piece in pieces], has_hosts):
        form = FORMS[name]
        for opening in _OPENINGS if form.is_wrapped else ("",):
            pattern = opening + form.pattern
            if not _split(pattern, rests[:50]):
                continue
            matches = _split(pattern, rests)
            if form.is_wrapped:
                tail = Counter(_TAIL.match(rest)[0] for rest in matches).most_common(1)[0][0]  # type: ignore[index]
                pattern += re.escape(tail.rstrip()) + (_BLANK if tail.endswith(" ") else "")
                matches = _split(pattern, rests)
            if len(matches) > len(best_rests) and (name != "task" or _has_few_ranks(pattern, rests)):
                best, best_rests = Piece(name, pattern), matches
    return best, best_rests


def _list_next_forms(forms: Sequence[str], has_hosts: bool) -> list[str]:
    """Return the forms that may follow these."""
    last, has_time = forms[-1] if forms else "", any(form in TIMES for form in forms)
    hosts = ["host_labels", "host_level", "host"]
    if "version" in forms or last in KERNEL_TIMES:
        hosts = ["host_5424" if "version" in forms else "host_kernel"]
    labels = [name for name in LABELS if name != last and not (has_time and name in _BEFORE_TIMES)]
    return [*TIMES, *labels, *(hosts if has_hosts and last in TIMES else ())]


def _has_few_ranks(pattern: str, lines: Sequence[str]) -> bool:
    """Return whether numbers at the start are those of processes, each of which writes several lines."""
    ranks = [match["rank"] for match in map(_compile(pattern), lines) if match]
    return len({*ranks}) * 2 <= len(ranks)


def _split(pattern: str, lines: Sequence[str]) -> list[str]:
    """Return what follows the pattern in the lines that start with it."""
    matches, has_node = map(_compile(pattern), lines), "<node>" in pattern
    return [
        match.string[match.end() :]
        for match in matches
        if match and not (has_node and _NO_NODE.fullmatch(match["node"]))
    ]


@cache
def _compile(pattern: str) -> Callable[[str], re.Match | None]:
    return re.compile(pattern).match
