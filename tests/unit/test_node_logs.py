"""Logs of nodes: each layout with kernel lines as published, bad input of each kind, and an account of every line.

Lines quoted with their source are facts about the form of messages: NVIDIA's page on XIDs (docs.nvidia.com/deploy/
xid-errors), the tests of github.com/leptonai/gpud (components/accelerator/nvidia/xid, sxid, nfs, memory, os), pastebin
JGib9HML and NGng33SB, and gist 84ce815d0a8ad85ecaf6.
"""

import gzip
import json
import re
import string
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ttf.engine.errors import StudyError
from ttf.raw.node_logs import line_blocks
from ttf.raw.node_logs.layouts import describe_unread_form, detect_layout
from ttf.raw.node_logs.merging import merge_close
from ttf.raw.node_logs.node_names import NodeNames
from ttf.raw.node_logs.reader import KINDS, LogOptions, name_node, read_node_logs
from ttf.raw.node_logs.rules import Rules, find_errors
from ttf.records.node_errors import (
    find_watch,
    find_window,
    list_trace_nodes,
    mark_boot_errors,
    measure_clock_offsets,
    tabulate_lines,
)
from ttf.records.record_contracts import NODE_LOG_LINES
from ttf.study.configuration.log_rules import load_log_rules
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.taxonomy import find_pattern_problem

SHIPPED = Path(__file__).resolve().parents[2] / "config" / "node_log_rules.yaml"
DOCUMENT = load_log_rules(SHIPPED)
RULES = Rules.from_options(DOCUMENT)
NO_OFFSETS = pl.DataFrame(schema={"node": pl.String, "clock_offset_s": pl.Int64})
# 2025-03-01 08:00:00 UTC
NOON = 1_740_816_000
XID_79 = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def make_options(nodes=(), window=None, zone="UTC", merge_s=5, gap_s=86_400, rules=RULES):
    return LogOptions(rules, zone, window, NodeNames(nodes), merge_s, gap_s)


@pytest.fixture
def read(tmp_path):
    """Return a function that writes logs, name -> text or bytes, and reads them."""

    def run(logs, **options):
        for name, content in logs.items():
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_node_logs([tmp_path / name for name in logs], make_options(**options))

    return run


def list_errors(logs):
    errors = mark_boot_errors(logs, 300)
    return errors.select("node", pl.col("gpu").fill_null("-"), "code", "time_s").rows()


def tabulate(logs, **options):
    errors = mark_boot_errors(logs, 300)
    watch = find_watch(logs, [], 86_400, NO_OFFSETS)
    lines = tabulate_lines(logs.account, errors, watch)
    NODE_LOG_LINES.conform(lines)
    return {code: (rows, first) for code, _, rows, _, first, _ in lines.rows()}


# Messages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "NVRM: Xid error: xyz, invalid data",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
        "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): xyz, Fatal error",
        "nfs: server 10.0.0.5 OK",
        "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
        "VFS: file-max limit 1000000 reached",
        "mce: [Hardware Error]: Machine check events logged",
        "mce: CPU7: Core temperature/speed normal (total events = 219)",
        "GPU temperature above threshold normal again",
        "I/O error, dev sr0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
        "md/raid1:md1: read error corrected (8 sectors at 2056 on sdb1)",
        "amdgpu 0000:c3:00.0: amdgpu: no uncorrectable hardware errors detected in umc block",
        "Lustre: home-OST0001-osc: Connection restored to 10.0.0.1@o2ib (at 10.0.0.1@o2ib)",
    ],
)
def test_other_messages_are_no_errors(message):
    assert find_errors(pl.Series([message]), RULES)["code"].null_count() == 1


# What the kernel, its drivers and Lustre write, by public logs, archives of their lists and parts of their sources.
KERNEL_TEXTS = """
XID 79 | PCIe | error | NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
XID 79 | PCIe | error | NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.
XID 31 | Application | error | NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120
SXID 12028 | NVSwitch | warning | nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress (First)
OOM | Application | error | oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,task=postgres,pid=12345
XID 14 | GPU | error | NVRM: Xid (0000:03:00): 14, Channel 00000001
XID 69 | Application | error | NVRM: Xid (PCI:0000:01:00): 69, Class Error: ChId 0005
SXID 20034 | NVSwitch | error | nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30
STORAGE STALL | Storage | warning | nfs: server 7.247.192.16 not responding, timed out
HUNG TASK | System software | warning | INFO: task jfsmount:136986 blocked for more than 120 seconds.
MCE | CPU | error | mce: [Hardware Error]: CPU 1: Machine Check: 0 Bank 5: bea0000000000108
ECC | Memory | error | EDAC MC0: 1 UE memory read error on CPU_SrcID#0
AER | PCIe | error | pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received
IB LINK | Network | error | mlx5_core 0000:3b:00.0 ib0: Link down
THERMAL | Power and cooling | error | CPU3: Package temperature above threshold, cpu clock throttled
POWER | Power and cooling | error | mlx5_core 0000:5c:00.0: Detected insufficient power on the PCIe slot (27W).
XID 149 | NVLink | warning | NVRM: Xid (PCI:0018:01:00): 149, pid=7, name=a, NETIR_BER_EVENT Nonfatal XC0 i0
XID 149 | NVLink | error | NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406)
XID 43 | Application | error | NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 43, pid=1, name=python, Ch 00000008
XID 79 | PCIe | error | NVRM: The NVIDIA GPU 0000:b3:00.0
SXID 20034 | NVSwitch | error | SXid (PCI:0000:05:00.0): 20034, Severity 1 Engine instance 30 Sub-engine instance 00
THERMAL | Power and cooling | error | CPU7: Core temperature is above threshold, cpu clock is throttled
AER NON-FATAL | PCIe | warning | pcieport 0000:3a:00.0: AER: Uncorrected (Non-Fatal) error received: 0000:3b:00.0
AER NON-FATAL | PCIe | warning | nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=A
AER | PCIe | error | nvidia 0000:3b:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Inaccessible
AER CORRECTED | PCIe | warning | pcieport 0000:00:01.1: AER: Multiple Correctable error message received from 0:1
ECC | Memory | error | mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 7: bd80000000100093
ECC CORRECTED | Memory | warning | mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: 8c00004000010092
MCE CORRECTED | CPU | warning | mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 0: 9000004000010005
MCE CORRECTED | CPU | warning | [Hardware Error]: CPU:12 (17:71:0) MC1_STATUS[Over|CE|MiscV|AddrV|-]: 0xdc20000000030151
MCE | CPU | error | [Hardware Error]: CPU:12 (17:71:0) MC5_STATUS[-|UE|MiscV|AddrV|PCC|-]: 0xbea0000000000108
ECC | Memory | error | Memory failure: 0xe16677: Killing python:4242 due to hardware memory corruption
DISK | Storage | error | XFS (nvme0n1p1): log I/O error -5
DISK | Storage | error | EXT4-fs error (device nvme0n1p2): ext4_find_entry:1455: inode #2: comm ls: reading directory
DISK | Storage | error | I/O error, dev nvme0n1, sector 1234 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2
DISK | Storage | error | md/raid1:md0: Disk failure on sdc1, disabling device.
DISK | Storage | warning | nvme nvme0: I/O tag 489 (d1e9) opcode 0x1 (I/O Cmd) QID 3 timeout, aborting req_op:WRITE(1)
NIC FAULT | Network | error | mlx5_core 0000:61:00.1: mlx5_health_try_recover:381:(pid 1): health recovery flow aborted
NIC FAULT | Network | error | mlx5_core 0000:61:00.1: ACCESS_REG(0x805) timeout. Will cause a leak of a command resource
THERMAL | Power and cooling | error | mlx5_core 0000:61:00.0: High temperature on sensors with bit set 0 1
AMD GPU ECC | GPU memory | error | amdgpu 0000:83:00.0: {3} 2 new uncorrectable hardware errors detected in umc block
AMD GPU RESET | GPU | error | amdgpu 0000:0a:00.0: amdgpu: GPU reset begin!
LNET | Network | warning | LNetError: 2384:0:(o2iblnd_cb.c:3370:kiblnd_check_conns()) Timed out RDMA with 10.0.0.4
STORAGE STALL | Storage | warning | LustreError: 167-0: home-OST0001: This client was evicted by home-OST0001
LUSTRE | Storage | warning | LustreError: 2384:0:(file.c:216:ll_close_inode_openhandle()) mdc close failed: rc = -108
"""


@pytest.mark.parametrize("row", KERNEL_TEXTS.strip().splitlines())
def test_published_texts_of_the_kernel_are_picked(row):
    code, component, severity, message = row.split(" | ")
    error = find_errors(pl.Series([message]), RULES).row(0, named=True)
    assert (error["code"], error["component"], error["severity"]) == (code, component, severity)
    assert error["application"] == (component == "Application")
    assert pl.Series([f"2025-03-01T08:00:00Z n1 kernel: {message}"]).str.contains(RULES.any_pattern).all()


def firmware(*sections, event="recoverable"):
    """Return the lines of a record of the firmware, of sections with a type and a severity."""
    lines = ["Hardware error from APEI Generic Hardware Error Source: 4", f"event severity: {event}"]
    for number, (kind, severity) in enumerate(sections):
        lines += [f" Error {number}, type: {severity}", "  fru_text: Card01", f"  section_type: {kind} error"]
        lines += ["  device_id: 0000:c9:02.0"] if kind == "PCIe" else ["  error_status: 0x0000000000000400"]
    return [f"{{7}}[Hardware Error]: {line}" for line in lines]


AMD = [
    "[Hardware Error]: Corrected error, no action required.",
    "[Hardware Error]: CPU:0 (17:71:0) MC18_STATUS[Over|CE|MiscV|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b",
    "[Hardware Error]: Unified Memory Controller Ext. Error Code: 0, DRAM ECC error.",
    "EDAC MC0: 1 CE Cannot decode normalized address on mc#0csrow#3channel#1 (csrow:3 channel:1 page:0x0)",
]
SXID = "nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, "
SXIDS = [SXID + text for text in ("Data {0x2c, 0x2c}", "{}, Link 44 Minion", "Severity 1 Engine instance 44")]


@pytest.mark.parametrize(
    ("lines", "errors"),
    [
        ([line.replace("{}", "Fatal") for line in SXIDS], [("SXID 22013", "NVSwitch", "error", 3)]),
        (firmware(("memory", "recoverable")), [("ECC", "Memory", "error", 6)]),
        (firmware(("memory", "corrected"), ("PCIe", "fatal"), event="fatal"), [("AER", "PCIe", "error", 10)]),
        (firmware(("PCIe", "recoverable")), [("AER NON-FATAL", "PCIe", "warning", 6)]),
        (AMD, [("ECC CORRECTED", "Memory", "warning", 4)]),
        # Of the errors of one code within 5 s, the worst counts, whichever comes first.
        (
            [f"NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP {word} XC0" for word in ("Nonfatal", "Fatal", "Nonfatal")],
            [("XID 145", "NVLink", "error", 3)],
        ),
    ],
)
def test_an_error_of_several_lines_is_one(read, lines, errors):
    content = "".join(iso(second, line) for second, line in enumerate(lines))
    # Lines of another node between them change nothing.
    mixed = "".join(iso(second, line) + iso(second, line, "n2") for second, line in enumerate(lines))
    select = ("code", "component", "severity", "lines")
    assert read({"log": content}).errors.select(*select).rows() == errors
    assert sorted(read({"log": mixed}).errors.select(*select).rows()) == sorted(errors * 2)


@pytest.mark.parametrize("prefix", ["", "n1: "])
def test_a_line_without_a_time_continues_the_line_before(read, prefix):
    head, indent = f"{prefix}[Sat Mar  1 08:00:00 2025] ", prefix + " " * 27
    content = f"{head}NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5)\n{indent}NVRM: has fallen off the bus.\n"
    logs = read({"n1": content + "no time\n" + f"{head}usb 1-1: new\n" * 3})
    assert list_errors(logs) == [("n1", "0000:b3:00", "XID 79", NOON)]
    assert logs.account.rows == {"picked": 1, "continued": 1, "no_time": 1, "unmatched": 3}


def test_events_of_dcgm_have_the_xid_of_their_message(read):
    event = NVSENTINEL | {"errorCode": ["DCGM_FR_UNCONTAINED_ERROR"], "message": "GPU had an error (XID 95)."}
    log = iso(3, "NVRM: Xid (PCI:0000:05:00): 95, pid=1, Uncontained")
    logs = read({"n1.json": json.dumps(event | {"checkName": "GpuMemWatch"}) + "\n", "log": log})
    assert logs.errors.select("code", "gpu", "component", "lines").rows() == [("XID 95", "0000:05:00", "GPU memory", 2)]


def test_shipped_patterns_compile_and_name_known_groups():
    patterns = [rule["pattern"] for rule in DOCUMENT["rules"] + DOCUMENT["monitors"]]
    for pattern in [*patterns, *DOCUMENT["boot"], *DOCUMENT["job_start"]]:
        assert find_pattern_problem(pattern) is None
        assert set(re.findall(r"[?]P?<(\w+)>", pattern)) <= {"code", "gpu", "job"}


_PLAIN_WORDS = st.from_regex(r"\A[A-Za-z0-9<>./_-]{1,9}\Z")

# Layouts ------------------------------------------------------------------------------------------------

JOURNAL_RECORD = {"__REALTIME_TIMESTAMP": f"{NOON}000123", "_HOSTNAME": "n1", "MESSAGE": XID_79, "PRIORITY": "3"}
NVSENTINEL = {
    "version": 1,
    "agent": "syslog-health-monitor",
    "componentClass": "GPU",
    "checkName": "SysLogsXIDError",
    "isFatal": True,
    "isHealthy": False,
    "message": "GPU has fallen off the bus",
    "errorCode": ["79"],
    "entitiesImpacted": [{"entityType": "PCI", "entityValue": "0000:05:00.0"}],
    "generatedTimestamp": "2025-03-01T08:00:00.123Z",
    "nodeName": "n1",
}
GPUD = [
    {
        "component": "accelerator-nvidia-error-xid",
        "startTime": "2025-03-01T00:00:00Z",
        "endTime": "2025-03-02T00:00:00Z",
        "events": [
            {
                "component": "accelerator-nvidia-error-xid",
                "time": "2025-03-01T08:00:00Z",
                "name": "error_xid",
                "type": "Fatal",
                "message": "XID 79 GPU has fallen off the bus detected on GPU PCI:0000:05:00",
            }
        ],
    }
]


LINES = """
log | iso host | 2025-03-01T08:00:00+0000 n1 kernel: {}
log | iso host uptime | 2025-03-01T09:00:00.123456+01:00 n1 kernel: [171167.620236] {}
log | label iso host | n1: 2025-03-01T08:00:00+0000 n1 kernel: {}
n1.log | ctime | [Sat Mar  1 08:00:00 2025] {}
all.log | label ctime | n1: [Sat Mar  1 08:00:00 2025] {}
dmesg-n1.txt | dmesg_iso | 2025-03-01T08:00:00,285060+00:00 {}
log | syslog host uptime | Mar  1 08:00:00 n1 kernel: [  123.456789] {}
log | priority syslog host | <4>Mar  1 08:00:00 n1 kernel: {}
log | syslog host | Mar 01 08:00:00.123456 n1 kernel: {}
log | full host | Sat 2025-03-01 08:00:00 UTC n1 kernel: {}
log | full host | Sat 2025-03-01 11:00:00 +03 n1 kernel: {}
log | priority version iso host_5424 | <4>1 2025-03-01T08:00:00.123Z n1 kernel - - - {}
log | label version iso host_5424 | n1: 1 2025-03-01T08:00:00Z n1 kernel 12 ID [a x="1"][b y="2"] {}
dmesg-n1 | level dmesg_iso | kern  :warn  : 2025-03-01T08:00:00,283302+00:00 {}
n1.log | level ctime | kern  :err   : [Sat Mar  1 08:00:00 2025] {}
n1.log | level iso | kern:    info: [2025-03-01T08:00:00.123456789Z]: {}
log | label level iso | n1: kern: warning: [2025-03-01T08:00:00Z]: {}
"""


@pytest.mark.parametrize(
    ("name", "layout", "content"),
    [
        *(line.replace("{}", XID_79).split(" | ") for line in LINES.strip().splitlines()),
        ("log", "log_json", json.dumps({"date": NOON + 0.5, "host": "n1", "ident": "kernel", "message": XID_79})),
        ("log", "log_json", json.dumps({"timestamp": NOON * 1000, "hostname": "n1", "msg": XID_79, "name": "kernel"})),
        ("log", "log_json", json.dumps({"_source": {"@timestamp": NOON, "host": {"name": "n1"}, "message": XID_79}})),
        ("log", "log_csv", f'@timestamp,host.name,message\n2025-03-01T08:00:00.000Z,n1,"{XID_79}"'),
        ("log", "log_csv", f'\ufeff\r\n_time,host,_raw\r\n{NOON},n1,"{XID_79}"\r'),
        ("log", "iso host", f"\ufeff\n2025-03-01T08:00:00+0000 n1 kernel: {XID_79}\r"),
        ("log", "journal_json", json.dumps(JOURNAL_RECORD)),
        ("log", "journal_json", json.dumps(JOURNAL_RECORD | {"MESSAGE": [*XID_79.encode()]})),
        ("log", "csv", "node,time,code,gpu\nn1,2025-03-01T08:00:00Z,XID79,0000:05:00.0"),
        ("log", "csv", f'severity,code,time,node,message\nhigh,,{NOON},n1,"a, {XID_79}"'),
        ("log", "event_json", json.dumps(NVSENTINEL)),
        ("log", "event_json", json.dumps({"version": 1, "events": [NVSENTINEL]}, indent=1)),
        ("log", "event_json", json.dumps({"items": [{"spec": NVSENTINEL}]})),
        (
            "log",
            "event_json",
            json.dumps({"createdAt": 1, "healthevent": {k.lower(): v for k, v in NVSENTINEL.items()}}),
        ),
        (
            "log",
            "event_json",
            json.dumps(NVSENTINEL | {"generatedTimestamp": {"seconds": NOON, "nanos": 1}, "errorCode": "79"}),
        ),
        ("n1.json", "event_json", "\ufeff\n" + json.dumps(GPUD, indent=1)),
    ],
)
def test_each_layout_gives_the_same_error(read, name, layout, content):
    detected = detect_layout(content.encode())
    assert (" ".join(detected.head.forms) if detected.name == "text" else detected.name) == layout
    logs = read({name: content + "\n"}, window=(NOON - 86_400, NOON + 86_400), nodes=["n1", "n2"])
    assert list_errors(logs) == [("n1", "0000:05:00", "XID 79", NOON)]
    row = logs.errors.row(0, named=True)
    assert (row["component"], row["severity"], row["application"], row["lines"]) == ("PCIe", "error", False, 1)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "JobIDRaw|State|Start\n1|FAILED|2",
        "a,b\n1,2",
        "{}",
        '[{"a": 1}]',
        "\0\0\0",
        "\ufeff",
        f"2025-03-01T08:00:00.123456789Z stdout F {XID_79}",
        "2025-03-01T08:00:00.123456789Z stderr P half of: a line",
        '{"log": "x kernel: y", "stream": "stdout", "time": "2025-03-01T08:00:00Z"}',
        '{"time": 1, "host": {"name": "n1"}, "message": "x", "kubernetes": {"pod": "web-1"}}',
        '{"level": 30, "time": 1740816000000, "pid": 1, "hostname": "web-1", "msg": "hello"}',
        "2025-03-01 08:00:00 install linux-image-6.8:amd64 <none> 6.8.0",
        "2025-03-01 08:00:00 configure libc-bin:amd64 2.31 <none>",
        "2025-03-01 08:00:00.123 ERROR  [1234:5678] [[NvSwitch]] Not attached",
        "2025-03-01T08:00:00+0000 SUBDEBUG Installed: kernel-core-5.14",
        "2025-03-01T08:00:00Z INFO my_crate: hello",
        "2025-03-01 08:00:00,123 - util.py[DEBUG]: Cloud-init",
        "[2025-03-01T08:00:00.123] error: Node n1 not responding",
        "Mar 01 08:00:00 Installed: kernel-5.14",
        "[    12.345] (II) LoadModule: glx",
        "Start-Date: 2025-03-01  08:00:00\nCommandline: apt install x",
        "2025/03/01 08:00:00 [error] 12#12: *1 open() failed",
    ],
)
def test_other_files_are_no_logs(content):
    assert detect_layout(content.encode()) is None


@given(
    time=st.sampled_from(["2025-03-01 08:00:00", "2025-03-01T08:00:00Z", "Mar  1 08:00:00"]),
    words=st.lists(_PLAIN_WORDS, max_size=5),
)
def test_a_word_behind_a_time_is_no_node(time, words):
    assert detect_layout("\n".join([" ".join([time, *words])] * 9).encode()) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2025-03-01T08:00:00Z stderr F x", "a container, whose lines name no node"),
        ('{"log": "x", "stream": "stdout"}', "a container, whose lines name no node"),
        ("kern  :err   : [   12.345678] x", "dmesg -T"),
        ("   Cluster        NodeName\n---------- ---------------\nc n1", "Print it again with -P"),
        ("NodeName|TimeStart\nn1|2025", ""),
    ],
)
def test_a_form_that_is_not_read_says_how_to_print_it_again(text, words):
    described = describe_unread_form(text.encode())
    assert words in described and bool(words) == bool(described)


def test_a_layout_holds_for_each_line_of_the_file(read):
    content = iso(0, XID_79) * 9 + "2025-03-01 08:00:00 status installed man-db\n" + "Mar  1 08:00:00 n1 kernel: x\n"
    logs = read({"log": content})
    assert logs.account.rows == {"picked": 9, "no_time": 2, "errors_only": 9}
    assert logs.spans["node"].to_list() == ["n1"]


def test_names_of_time_zones_have_to_be_those_of_the_trace(read):
    line = f"Sun 2025-10-26 02:30:00 {{}} n1 kernel: {XID_79}\n"
    logs = read({"log": "".join(map(line.format, ("CEST", "CET", "PST", "UTC")))}, zone="Europe/Berlin")
    assert [time for *_, time in list_errors(logs)] == [1_761_438_600, 1_761_442_200, 1_761_445_800]
    assert logs.account.rows["no_time"] == 1


@pytest.mark.parametrize("record", [JOURNAL_RECORD, GPUD[0]])
def test_half_a_pair_of_escapes_is_replaced_and_counted(read, record):
    text = json.dumps(record).replace("fallen", "\\ud800 fallen \\U0001f600".lower())
    logs = read({"n1.json": text + "\n"})
    assert list_errors(logs) == [("n1", "0000:05:00", "XID 79", NOON)]
    assert logs.account.rows["undecodable"] == 1


def test_records_of_a_log_watch_their_node_while_they_are_written(read):
    rows = "".join(f"n{1 + day % 2},{NOON + day * 86_400},usb\n" for day in (0, 1, 2, 9))
    logs = read({"log.csv": "node,time,message\n" + rows}, gap_s=2 * 86_400)
    days = logs.spans.select("node", (pl.col("start_s") - NOON) / 86_400, (pl.col("end_s") - NOON) / 86_400).rows()
    assert days == [("n1", 0, 2), ("n2", 1, 1), ("n2", 9, 9)]
    assert not logs.event_spans.height


def test_packed_logs_are_read(read):
    logs = read({"n1.log.gz": gzip.compress(f"[Sat Mar  1 08:00:00 2025] {XID_79}\n".encode())})
    assert list_errors(logs) == [("n1", "0000:05:00", "XID 79", NOON)]


@pytest.mark.parametrize("name", ["gpu17.log", "dmesg-gpu17.txt.gz", "gpu17_dmesg.log", "gpu17", "gpu17-kern.log.zst"])
def test_a_file_is_named_after_its_node(name):
    assert name_node(Path(name)) == "gpu17"


def test_times_without_zone_are_in_the_zone_of_the_trace(read):
    # Summer time ends in Berlin on 2025-10-26; of two equal hours the earlier is taken.
    lines = "[Sat Mar  1 09:00:00 2025] {0}\n[Sun Oct 26 02:30:00 2025] {0}\n[Sun Mar 30 02:30:00 2025] {0}\n"
    logs = read({"n1": lines.format(XID_79)}, zone="Europe/Berlin")
    assert [time for *_, time in list_errors(logs)] == [NOON, 1_761_438_600]
    assert tabulate(logs)["no_time"][0] == 1  # 02:30 of 30 March does not exist


def test_syslog_takes_its_years_from_the_trace(read, monkeypatch):
    lines = ["Dec 31 23:59:00", "Jan  1 00:01:00", "Dec 31 23:59:30", "Jan  1 00:02:00", "Mar  1 08:00:00"]
    content = "".join(f"{time} n1 kernel: {XID_79}\n" for time in lines)
    logs = read({"log": content}, window=(1_730_000_000, NOON + 86_400))
    years = [int(pl.from_epoch(pl.Series([time])).dt.year()[0]) for *_, time in list_errors(logs)]
    assert years == [2024, 2024, 2025, 2025, 2025]
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 64)
    assert list_errors(read({"log": content}, window=(1_730_000_000, NOON + 86_400))) == list_errors(logs)
    with pytest.raises(StudyError, match=r"its times have no year.*journalctl -k -o short-iso"):
        read({"log": content})


def test_a_log_in_an_unknown_layout_says_what_to_do(read):
    with pytest.raises(StudyError, match=r"count from the start of the node.*journalctl -k -o short-iso.*dmesg -T"):
        read({"n1": "[  123.456789] NVRM: Xid (PCI:0000:05:00): 79, x\n"})
    logs = read({"n1": "dmesg: read kernel buffer failed\n", "n2": f"[Sat Mar  1 08:00:00 2025] {XID_79}\n", "n3": ""})
    assert tabulate(logs)["no_layout"] == (1, "n1: 1")


# Errors, not lines --------------------------------------------------------------------------------------


def iso(seconds, message, node="n1"):
    time = pl.from_epoch(pl.Series([NOON + seconds])).dt.strftime("%Y-%m-%dT%H:%M:%S")[0]
    return f"{time}+0000 {node} kernel: {message}\n"


def test_repeats_are_one_error(read):
    other_gpu = XID_79.replace("05:00", "06:00")
    times = [0, 3, 8, 14, 100]
    content = "".join(iso(time, XID_79) for time in times) + iso(1, other_gpu) + iso(2, XID_79, "n2")
    errors = mark_boot_errors(read({"log": content}), 300)
    rows = errors.select("node", "gpu", pl.col("time_s") - NOON, pl.col("last_s") - NOON, "lines").rows()
    assert rows == [
        ("n1", "0000:05:00", 0, 8, 3),
        ("n1", "0000:06:00", 1, 1, 1),
        ("n2", "0000:05:00", 2, 2, 1),
        ("n1", "0000:05:00", 14, 14, 1),
        ("n1", "0000:05:00", 100, 100, 1),
    ]


@given(
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(0, 9)), max_size=30),
    cut=st.integers(0, 30),
)
def test_merging_in_two_steps_is_merging_at_once(rows, cut):
    frame = pl.DataFrame(
        [(node, start, start + length, 1) for node, start, length in rows],
        schema={"node": pl.String, "time_s": pl.Int64, "last_s": pl.Int64, "lines": pl.Int64},
        orient="row",
    )
    steps = pl.concat([merge_close(frame[:cut], 5), merge_close(frame[cut:], 5)])
    assert merge_close(steps, 5).equals(merge_close(frame, 5))
    assert merge_close(frame, 5)["lines"].sum() == frame.height


def test_errors_at_a_start_are_told_apart(read):
    content = (
        iso(-10, XID_79) + iso(0, "Linux version 5.15.0-91-generic (buildd@lcy02)") + iso(60, XID_79) + iso(400, XID_79)
    )
    errors = mark_boot_errors(read({"log": content}), 300)
    assert errors["at_boot"].to_list() == [False, True, False]


def test_a_silence_is_a_gap_in_watching(read):
    content = "".join(iso(day * 86_400, "usb 1-1: new") for day in (0, 0.5, 1, 3, 3.5))
    content += iso(86_400, "usb 1-1: new", "n2")
    watch = find_watch(read({"log": content}), ["n1", "n2", "n3"], 86_400, NO_OFFSETS)
    days = watch.select("node", (pl.col("start_s") - NOON) / 86_400, (pl.col("end_s") - NOON) / 86_400).rows()
    assert days == [("n1", 0, 1), ("n1", 3, 3.5), ("n2", 1, 1)]


@pytest.mark.parametrize("is_csv", [False, True])
def test_events_and_logs_of_errors_only_watch_all_nodes_of_the_trace(read, is_csv):
    events = f"node,time,code\nn1,{NOON},XID79\nn1,{NOON + 9_000_000},IB_LINK\n"
    logs = read({"log": events if is_csv else iso(0, XID_79) + iso(9_000_000, XID_79)}, nodes=["n1", "n2"])
    watch = find_watch(logs, ["n1", "n2"], 86_400, NO_OFFSETS)
    assert watch.drop("clock_offset_s").rows() == [(node, NOON, NOON + 9_000_000) for node in ("n1", "n2")]
    assert logs.account.rows.get("errors_only", 0) == (0 if is_csv else 2)


def test_a_storm_of_one_node_is_no_log_of_errors_only(read):
    storm = "".join(iso(time, XID_79) for time in range(50))
    logs = read({"log": storm + "".join(iso(3600 * hour, "usb 1-1: new", "n2") for hour in range(5))})
    assert "errors_only" not in logs.account.rows
    assert not logs.event_spans.height


def test_clocks_are_compared_with_starts_of_jobs(read):
    starts = [
        (job, node, NOON + 1000 * job)
        for node, jobs in (("n1", (1, 2, 3)), ("n2", (4, 5, 6)), ("n3", (7,)))
        for job in jobs
    ]
    offsets = {"n1": 2, "n2": 3600, "n3": 0}
    content = "".join(
        iso(start - NOON + offsets[node], f"launch task StepId={job}.0 request from UID:1", node)
        for job, node, start in starts
    )
    content += iso(5, XID_79, "n2") + iso(5, XID_79, "n3")
    logs = read({"log": content})
    placements = pl.DataFrame(
        [(str(j), n, s) for j, n, s in starts], schema=["job_id", "node", "start_s"], orient="row"
    )
    measured = measure_clock_offsets(logs.job_starts, placements.lazy())
    assert measured.rows() == [("n1", 2), ("n2", 3600)]
    errors, watch = mark_boot_errors(logs, 300), find_watch(logs, [], 86_400, measured)
    rows = {row["code"]: row["rows"] for row in tabulate_lines(logs.account, errors, watch).to_dicts()}
    assert (rows["clock_off"], rows["clock_unknown"]) == (1, 1)


# Bad input ----------------------------------------------------------------------------------------------


def test_every_kind_of_bad_line_is_accounted_for(read):
    good = iso(0, XID_79)
    lines = [
        good.encode(),
        b"-- Boot 3c5f6b1a --\n",
        b"\n",
        good.replace("n1", "n1.cluster.org").encode(),  # the full name
        b"\x1b[31m" + good.encode().replace(b"NVRM", b"\x1b[1mNVRM") + b"\x1b[0m",  # colours
        b"\0\0\0" + good.encode(),
        good.encode().replace(b"fallen", b"f\xff\xfe"),
        b"2025-13-45T08:00:00+0000 n1 kernel: no such day\n",
        b"NVRM: Xid (PCI:0000:05:00): 79, cut at its start\n",
        good.encode()[:20] + b"\n",
        iso(-9_000_000, XID_79).encode(),
        iso(9_000_000, XID_79).encode(),
        iso(0, XID_79, "login1").encode(),
        iso(0, "usb 1-1: new high-speed USB device").encode().replace(b"\n", b"\r\n"),
        b"1970-01-01T00:00:10+0000 n1 kernel: a clock that was not set\n",
    ]
    logs = read({"log": b"".join(lines)}, nodes=["n1"], window=(NOON - 1000, NOON + 1000))
    assert tabulate(logs) == {
        "lines": (14, None),
        "picked": (5, "log: 1, 4, 5, 6, 7"),
        "unmatched": (1, None),
        "note": (1, "log: 2"),
        "no_time": (4, "log: 8, 9, 10, 15"),
        "before_trace": (1, "log: 11"),
        "after_trace": (1, "log: 12"),
        "unknown_node": (1, "log: 13"),
        "nul": (1, "log: 6"),
        "undecodable": (1, "log: 7"),
        "other_name": (1, "log: 4"),
        "clock_unknown": (5, None),
    }
    assert list_errors(logs) == [("n1", "0000:05:00", "XID 79", NOON)]


def test_a_line_without_end_does_not_fill_the_memory(read, monkeypatch):
    monkeypatch.setattr(line_blocks, "LONGEST_LINE_BYTES", 1 << 12)
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 1 << 13)
    content = iso(0, XID_79) + iso(1, XID_79 + "x" * 100_000) + iso(2, XID_79) + iso(3, XID_79 + "y" * 5000).rstrip()
    logs = read({"log": content})
    assert tabulate(logs)["cut"] == (2, "log: 2, 4")
    assert logs.account.rows["picked"] == 4


def test_names_are_matched_in_both_directions():
    names = NodeNames(["gpu1.a.org", "gpu2", "gpu3.a.org", "gpu3.b.org"])
    raw = pl.Series(["gpu1", "gpu1.a.org", "GPU2.a.org", "gpu3", "gpu1.b.org", "gpu3.b.org", None])
    assert names.match(raw).to_list() == ["gpu1.a.org", "gpu1.a.org", "gpu2", None, None, "gpu3.b.org", None]


def test_healthy_events_and_broken_records_are_no_errors(read):
    lines = [json.dumps(NVSENTINEL), json.dumps(NVSENTINEL | {"isHealthy": True}), '{"checkName": "cut', "null"]
    logs = read({"log": "\n".join(lines)})
    assert {kind: logs.account.rows.get(kind) for kind in ("picked", "recovered", "no_time")} == {
        "picked": 1,
        "recovered": 1,
        "no_time": 2,
    }


def test_codes_of_monitors_keep_their_words(read):
    rows = ["XID79,", "xid-31,", "IB_LINK,high", "FS_MOUNT,low", "GPU_ECC,", "odd,strange"]
    content = "node,time,code,severity\n" + "".join(f"n1,{NOON + 60 * n},{row}\n" for n, row in enumerate(rows))
    errors = read({"log": content}).errors
    assert errors.select("code", "component", "severity").rows() == [
        ("XID 79", "PCIe", "error"),
        ("XID 31", "Application", "error"),
        ("IB LINK", "Network", "error"),
        ("FS_MOUNT", "Storage", "info"),
        ("GPU_ECC", "GPU memory", "error"),
        ("odd", "Unknown", "error"),
    ]


_WORDS = st.text(string.printable + "\0\xe9\u2028", max_size=30)
_LINES = st.one_of(
    st.binary(max_size=40),
    _WORDS.map(str.encode),
    st.builds(
        lambda t, n, m: iso(t, m.replace("\n", ""), n).rstrip("\n").encode(),
        st.integers(-9999, 9999),
        st.sampled_from(["n1", "n2", "n1.x"]),
        _WORDS | st.just(XID_79),
    ),
    st.integers(0, 60).map(lambda cut: iso(0, XID_79).encode()[:cut]),
    _WORDS.map(lambda text: f"n1,{NOON},{text}".encode()),
    _WORDS.map(lambda text: json.dumps(JOURNAL_RECORD | {"MESSAGE": text}).encode()),
)
_STARTS = [
    iso(0, XID_79) * 40,
    "node,time,code,message\n",
    (json.dumps(JOURNAL_RECORD) + "\n") * 40,
    f"Mar  1 08:00:00 n1 kernel: {XID_79}\n" * 40,
    f"[Sat Mar  1 08:00:00 2025] {XID_79}\n" * 40,
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.sampled_from(_STARTS), lines=st.lists(_LINES, max_size=15))
@example(start=_STARTS[-1], lines=[json.dumps(JOURNAL_RECORD).encode()])
def test_all_lines_are_accounted_for(tmp_path, start, lines):
    content = start.encode() + b"\n".join(lines)
    path = tmp_path / "n1"
    path.write_bytes(content)
    options = make_options(nodes=["n1"], window=(NOON - 5000, NOON + 5000))
    logs = read_node_logs([path], options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_blocks, "BLOCK_BYTES", 700)
        parts = read_node_logs([path], options)
    assert parts.account.rows == logs.account.rows
    assert parts.errors.equals(logs.errors)
    # A colour and a NUL are removed before a line is looked at.
    clean = re.sub(rb"\x1b\[[0-9;]*[A-Za-z]", b"", content.replace(b"\0", b""))
    written = [line for line in clean.split(b"\n") if line.strip(b" \t\r")]
    assert sum(logs.account.rows.get(kind, 0) for kind in KINDS) == len(written)
    assert logs.errors["lines"].sum() == logs.account.rows.get("picked", 0)


# A person's rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        "BOOM$",
        r"\ABOOM",
        r"\AX? ?BOOM\z",
        "[:^]BOOM|[^x]BOOM$",
        "(?i)^boom$|b^",
        "(?x) BO OM # at [ the ( end",
        "(?x)\n  ^BOOM # first\n  $\n",
        "^(?:BOOM|b$)",
        "[[:upper:]]{4}$",
        r"\bBOOM\b",
        "^BOOM[^^$]?$",
        "[]x]?B[^]]+$",
        "[[^a]--[$x]]BOOM",
    ],
)
def test_a_pattern_means_what_it_says_in_each_layout(tmp_path, read, pattern):
    own = tmp_path / "mine.yaml"
    rule = {"pattern": pattern, "code": "MINE", "component": "GPU", "source": "me"}
    own.write_text(json.dumps({"rules": [rule]}))
    rules = Rules.from_options(load_log_rules(SHIPPED, str(own)))
    messages = ["BOOM", "a BOOM", "BOOM b", ":BOOM", "^BOOM", "usb 1-1: new", XID_79]
    times = [NOON + 60 * number for number in range(len(messages))]
    layouts = {
        node: "".join(iso(t - NOON, m, node) for t, m in zip(times, messages, strict=True)) for node in ("n1", "n2")
    }
    layouts["n2"] = layouts["n2"].replace("2025-03-01T", "Mar  1 ").replace("+0000", "")
    records = [
        JOURNAL_RECORD | {"__REALTIME_TIMESTAMP": f"{time}000000", "_HOSTNAME": "n3", "MESSAGE": message}
        for time, message in zip(times, messages, strict=True)
    ]
    layouts["n3"] = "".join(json.dumps(record) + "\n" for record in records)
    errors = read(layouts, rules=rules, window=(NOON - 9, NOON + 9_999)).errors.filter(code="MINE")
    expected = [
        time for time, text in zip(times, messages, strict=True) if pl.Series([text]).str.contains(pattern).item()
    ]
    assert expected
    assert sorted(errors.select("node", "time_s").rows()) == [(node, time) for node in layouts for time in expected]


def test_own_rules_come_first(tmp_path, read):
    own = tmp_path / "mine.yaml"
    own.write_text(
        "rules: [{pattern: '^acme: fault (?P<code>[0-9]+) on (?P<gpu>.)', code: ACME, component: GPU, source: a}]\n"
        "codes: {XID 79: {name: Cable, component: Network, source: us}}\n"
    )
    rules = Rules.from_options(load_log_rules(SHIPPED, str(own)))
    logs = read({"log": iso(0, "acme: fault 7 on 3") + iso(60, XID_79) + iso(90, "no acme: fault 7 on 3")}, rules=rules)
    assert list_errors(logs) == [("n1", "3", "ACME 7", NOON), ("n1", "0000:05:00", "XID 79", NOON + 60)]
    assert logs.errors["component"].to_list() == ["GPU", "Network"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: [{pattern: '(a', code: A, component: GPU, source: x}]", r"rules\[0\].pattern.*cannot be searched for"),
        ("rules: [{pattern: '(?=a)', code: A, component: GPU, source: x}]", "look-around"),
        ("rules: [{pattern: a, code: A, component: Cable, source: x}]", "component"),
        ("job_start: [prolog]", "it names no job"),
        ("multiline: [acme]", r"multiline\[0\]: it has no group"),
        (r"rules: [{pattern: '(a)\1', code: A, component: GPU, source: x}]", "backreferences are not supported"),
        ("rules: [{pattern: 'a|', code: A, component: GPU, source: x}]", "matches an empty message"),
        ("rules: [{pattern: '[:alpha:]x', code: A, component: GPU, source: x}]", r"write \[\[:name:\]\]"),
        ('rules:\n- {code: A, component: GPU, source: x, pattern: &p !!str "BOOM\\n"}', "has a line end"),
        (
            "rules:\n" + "- {pattern: '(?:a{999}){99}', code: A, component: GPU, source: x}\n" * 20,
            "line 1, column 1: rules: its patterns cannot be searched for together.*size",
        ),
        ("codes: {A: {name: a, component: GPU, severity: none, source: x}}", "severity"),
        ("rule: []", "rule"),
    ],
)
def test_faulty_rules_are_refused(tmp_path, text, message):
    own = tmp_path / "mine.yaml"
    own.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_log_rules(SHIPPED, str(own))


def test_no_pattern_of_a_person_takes_forever(tmp_path, read):
    own = tmp_path / "mine.yaml"
    own.write_text("rules: [{pattern: '(a+)+$', code: A, component: GPU, source: x}]\n")
    rules = Rules.from_options(load_log_rules(SHIPPED, str(own)))
    logs = read({"log": iso(0, "a" * 50_000 + "!") + iso(1, "usb")}, rules=rules)
    assert logs.account.rows == {"unmatched": 2}


# The trace ----------------------------------------------------------------------------------------------


def test_window_and_nodes_come_from_the_records():
    jobs = pl.DataFrame({"submit_s": [5, None], "start_s": [7, 9], "end_s": [8, None], "trace_end_s": [20, 20]})
    assert find_window(jobs.lazy()) == (5, 20)
    frames = {
        "jobs": jobs,
        "nodes": pl.DataFrame({"node": ["b"]}),
        "placements": pl.DataFrame({"node": ["a", None, "b"]}),
    }
    assert list_trace_nodes({name: frame.lazy() for name, frame in frames.items()}) == ["a", "b"]
