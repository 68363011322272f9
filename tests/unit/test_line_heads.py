"""Heads of lines: which labels, times and nodes a line starts with, and what is left of it."""

import polars as pl
import pytest
from ttf.raw.line_columns import count_new_years, parse_hours, read_lines, split_heads
from ttf.raw.line_heads import detect_head

# 2025-03-01 08:00:00 UTC
NOON = 1_740_816_000
# Forms of the head | node | rank | line; the rest is "step 1: x".
HEADS = """
iso | | | 2025-03-01T08:00:00Z {}
iso host | n1 | | 2025-03-01T09:00:00.123456+01:00 n1 kernel: {}
iso host uptime | n1 | | 2025-03-01T08:00:00Z n1 kernel: [  12.345678] {}
label iso host | n1.x | | n1: 2025-03-01 08:00:00 n1.x sshd[12]: {}
iso | | | 2025/03/01 08:00:00 - {}
iso_blank | | | 2025-03-01 09:00:00.5 +0100 {}
label dmesg_iso | n1 | | n1: 2025-03-01T08:00:00,285060+00:00 {}
full host | n1 | | Sat 2025-03-01 08:00:00 UTC n1 kernel: {}
level ctime | | | kern  :err   : [Sat Mar  1 08:00:00 2025] {}
label level iso | n1 | | n1: kern: warning: [2025-03-01T08:00:00.123456789Z]: {}
date | | | Sat Mar  1 08:00:00 UTC 2025 {}
month_year | | | Mar 1, 2025 @ 08:00:00.000 {}
priority syslog host | n1 | | <4>Mar  1 08:00:00 n1 kernel: {}
syslog host_level | n1 | | Mar 01 08:00:00 n1 kern.warn kernel: {}
priority version iso host_5424 | n1 | | <4>1 2025-03-01T08:00:00Z n1 kernel 12 ID [a x="1"][b y="2"] {}
unix host | n1 | | 1740816000.123456 n1 kernel: {}
web | | | 01/Mar/2025:09:00:00 +0100 {}
american | | | 03/01/2025 08:00:00 - {}
compact | | | 20250301 08:00:00 {}
month_slash | | | [03/01 08:00:00]: {}
glog | | | I0301 08:00:00.123456 {}
iso | | | [NeMo I 2025-03-01 08:00:00 {}
iso stream syslog host | n1 | | 2025-03-01T08:00:00.123456789Z stdout F Mar  1 07:59:00 n1 kernel: {}
rank iso | | 3 | [rank3]: [2025-03-01 08:00:00,123] {}
mpi iso | | 3 | [1,3]<stdout>:2025-03-01 08:00:00 {}
task iso | | 0 |  0: 2025-03-01 08:00:00.12 | {}
container pod iso | | | trainer-1  | [pod/a-0/x] 2025-03-01T08:00:00Z {}
ray iso | | | (Worker pid=12, ip=10.0.0.1) 2025-03-01 08:00:00,000 {}
syslog host iso | n1 | | Mar 01 08:00:00 n1 python[12]: 2025-03-01 08:00:00 | {}
"""


@pytest.mark.parametrize("row", HEADS.strip("\n").splitlines())
def test_a_head_is_what_all_lines_start_with(row):
    *fields, line = row.split("|", 3)
    forms, node, rank = (field.strip() for field in fields)
    lines = [line[1:].replace("{}", f"step {number}: x") for number in (1, 2, 1)]
    head = detect_head(lines)
    assert " ".join(head.forms) == forms
    expected = {"time_s": NOON, "node": node or None, "rank": rank or None}
    columns = read_lines(pl.Series([*lines, "  a line that goes on"]), head, "UTC", 2025)
    assert columns.rows(named=True)[1] == expected | {"rest": "step 2: x"}
    assert columns.row(3) == (None, None, None, "  a line that goes on")


@pytest.mark.parametrize(
    ("line", "clock", "time_s"),
    [("[   12.345678] usb 1-1: new", "uptime", 12), ("08:00:00 INFO x", "daytime", 28_800), ("Epoch 1: x", "", None)],
)
def test_clocks_without_a_day_count_from_their_start(line, clock, time_s):
    head = detect_head([line])
    assert head.clock == clock
    assert read_lines(pl.Series([line]), head)["time_s"].to_list() == [time_s]
    if clock:
        assert read_lines(pl.Series([line]), head, base_s=NOON)["time_s"].to_list() == [NOON + time_s]


def test_a_piece_is_taken_only_where_it_holds():
    # Words that vary are no labels, numbers that do not repeat are no ranks, and a few times are no clock.
    assert not detect_head([f"{number}: x" for number in range(50)]).pieces
    assert not detect_head(["2025-03-01 08:00:00 x", "a", "b"]).pieces
    assert detect_head(["1: x", "0: x"] * 9).forms == ["task"]
    assert detect_head(["2025-03-01 08:00:00 Epoch 1: x", "2025-03-01 08:00:00 n1 a: x"]).forms == ["iso"]
    assert detect_head(["[   60.000000] usb 1-1: new"]).forms == ["uptime"]
    assert detect_head(["2025-03-01 08:00:00 n1 a: x"], has_hosts=False).forms == ["iso"]


def test_lines_may_lack_labels():
    lines = ["n1: 2025-03-01 08:00:00 x"] * 3 + ["2025-03-01 08:00:00 x", "x"]
    columns = read_lines(pl.Series(lines), detect_head(lines))
    assert columns["node"].to_list() == ["n1"] * 3 + [None, None]
    assert columns["time_s"].null_count() == 1


def test_new_years_are_counted_in_both_directions():
    lines = [f"{day} 08:00:00 n1 a: x" for day in ("Dec 31", "Jan  1", "Dec 31", "Jan  2")]
    head = detect_head(lines)
    hours = split_heads(pl.DataFrame({"line": range(4), "text": lines}), head)["hour"]
    assert count_new_years(hours, head).to_list() == [0, 1, 0, 1]
    assert parse_hours(hours[1:2], head, "UTC", 2025).to_list() == [NOON - 59 * 86_400]
