"""Forms of logs that docs/your-data.md lists: the same lines in each form tell the same errors."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from ttf.engine.errors import StudyError
from ttf.raw.node_logs.layouts import describe_unread_form, detect_layout
from ttf.raw.node_logs.node_names import NodeNames
from ttf.raw.node_logs.reader import LogOptions, read_node_log
from ttf.raw.node_logs.rules import Rules
from ttf.study.configuration.log_rules import load_log_rules

ROOT = Path(__file__).resolve().parents[2]
RULES = Rules.from_options(load_log_rules(ROOT / "config" / "node_log_rules.yaml"))
# 2025-03-01 08:00:00 UTC
NOON = 1_740_816_000
START = NOON - 3000
LINES = [(0, "usb 1-1: new device"), (60, "NVRM: Xid (PCI:0000:05:00): 79, x"), (3600, 'audit: a="b", c')]


def render(template, separator="\n", around="{}"):
    """Return the lines in a form; {m} is the message, {j} it in JSON, {s} seconds, {i} an ISO time without a zone."""
    rows = []
    for offset, message in LINES:
        time = datetime.fromtimestamp(NOON + offset, UTC)
        values = {
            "{m}": message,
            "{j}": json.dumps(message),
            "{s}": str(NOON + offset),
            "{q}": message.replace('"', '""'),
        }
        values |= {"{u}": f"{3000 + offset:5d}.000012", "{i}": f"{time:%Y-%m-%dT%H:%M:%S}"}
        values |= {"{b}": f"{time:%b %d %H:%M:%S}", "{k}": f"{time:%b %d, %Y @ %H:%M:%S}.000"}
        values |= {"{c}": f"{time:%a %b %d %H:%M:%S %Y}", "{f}": f"{time:%a %Y-%m-%d %H:%M:%S} UTC"}
        values |= {"{a}": f"{time:%m/%d/%Y, %I:%M:%S}.123 {time:%p}", "{t}": f"{time:%Y-%m-%d %H:%M:%S}"}
        values["{l}"] = json.dumps(f"{values['{b}']} n1 kernel: {message}\n")
        rows.append(re.sub(r"\{[a-z]\}", lambda match, values=values: values[match[0]], template))
    return around.replace("{}", separator.join(rows), 1)


JOURNAL = '{"__REALTIME_TIMESTAMP":"{s}000001","_HOSTNAME":"n1","MESSAGE":{j}}'
DMESG_J = '{\n "dmesg": [\n{}\n ]\n}'
LOKI = '{"data":{"resultType":"streams","result":[{"stream":{"host":"n1","level":"warn"},"values":[{}]}]}}'
OTLP_HOST = '{"attributes":[{"key":"host.name","value":{"stringValue":"n1"}}]}'
FORMS = {
    "journal, a line each": [
        "{i}+0000 n1 kernel: {m}",
        "{f} n1 kernel: {m}",
        "{f} n1 init.scope[1]: {m}",
        "{s}.123456 n1 kernel: {m}",
        "{b}.123456 n1 kernel: {m}",
    ],
    "journal, records": [
        JOURNAL,
        "\x1e" + JOURNAL,
        "data: " + JOURNAL + "\n",
        JOURNAL.replace(",", ",\n\t"),
        (JOURNAL, ",\n", "[{}]"),
        "__CURSOR=s=0\n__REALTIME_TIMESTAMP={s}000001\n_HOSTNAME=n1\nMESSAGE={m}\n",
        "{f} [s=0a;i=1;b=2]\n    _HOSTNAME=n1\n    MESSAGE={m}",
    ],
    "dmesg": [
        "[{c}] {m}",
        "{i},000012+00:00 {m}",
        "kern  :warn  : [{c}] {m}",
        ('  {\n "pri": 4,\n "time": "{c}",\n "msg": {j}\n}', ",\n", DMESG_J),
    ],
    "dmesg since the start": [
        "[{u}] {m}",
        "<4>[{u}] {m}",
        "kern  :warn  : [{u}] {m}",
        "n1: [{u}] {m}",
        "[{u}] n1 kernel: {m}",
        "[{u} <    0.000012 >] n1 kernel: {m}",
        ('  {\n "pri": 4,\n "time": {u},\n "msg": {j}\n}', ",\n", DMESG_J),
    ],
    "syslog": [
        "{i}.123456+00:00 n1 kernel: [{u}] {m}",
        "<4>1 {i}Z n1 kernel - - - {m}",
        "<4>{b} n1 kernel: {m}",
        '{"message":{j},"fromhost":"n1","timereported":"{i}Z","timegenerated":"2026-03-01T00:00:00Z"}',
        '{"PROGRAM":"kernel","MESSAGE":{j},"HOST":"n1","DATE":"{b}","ISODATE":"{i}Z"}',
    ],
    "Talos": ["n1: kern: warning: [{i}.123456789Z]: {m}"],
    "container": [
        "{i}.123456789Z stdout F {b} n1 kernel: {m}",
        '{"log":{l},"stream":"stdout","time":"{i}.123456789Z"}',
        '{"log":"{\\"__REALTIME_TIMESTAMP\\":\\"{s}000001\\",\\"_HOSTNAME\\":\\"n1\\",\\"MESSAGE\\":\\"NVRM: Xid '
        '(PCI:0000:05:00): 79\\"}\\n","stream":"stdout","time":"{i}Z"}',
        "reader-1  | {i}+0000 n1 kernel: {m}",
        "[pod/reader-abc/reader] {i}+0000 n1 kernel: {m}",
    ],
    "Fluent Bit, Fluentd, Vector": [
        '{"date":{s}.5,"host":"n1","ident":"kernel","message":{j}}',
        ('{"date":{s}.5,"hostname":"n1","msg":{j}}', ",", "[{}]"),
        '{i}+00:00\tkernel\t{"host":"n1","message":{j}}',
        '{"PRIORITY":"4","host":"n1","message":{j},"source_type":"journald","timestamp":"{i}.123Z"}',
    ],
    "Loki": [
        '{i}Z {job="journal", host="n1"} {m}',
        '{"labels":{"host":"n1"},"line":{j},"timestamp":"{i}.123456789Z"}',
        ('["{s}123456789",{j}]', ",", LOKI),
        ('{"line":{j},"timestamp":"{s}123456789","date":"{i}Z","fields":{"host":"n1"}}', ",\n", "[\n{}\n]"),
        ('{i}.123Z,"{q}",n1,{s}123456789', "\n", "Date,Line,host,tsNs\n{}"),
    ],
    "Elasticsearch": [
        '{"_id":"1","_source":{"@timestamp":"{i}.000Z","host":{"name":"n1"},"message":{j}}}',
        ('{"_source":{"@timestamp":"{i}.000Z","host":{"name":"n1"},"message":{j}}}', ",", '{"hits":{"hits":[{}]}}'),
        ('"{k}",n1,"{q}"', "\n", "@timestamp,host.name,message\n{}"),
    ],
    "Splunk": [
        ('"{b} n1 kernel: {q}",{i}.000+0000,n1,os', "\n", "_raw,_time,host,index\n{}"),
        '{"preview":false,"result":{"_raw":{l},"_time":"{t}.000 UTC","host":"n1"}}',
        ('{"_time":"{i}Z","host":"n1","_raw":{j}}', ",", '{"fields":[{"name":"a"}],"results":[{}]}'),
    ],
    "Datadog": [
        ('{i}.123Z,n1,kernel,"{q}"', "\n", "Date,Host,Service,Message\n{}"),
        ('{"id":"A","attributes":{"timestamp":"{i}Z","host":"n1","message":{j}}}', ",", '{"data":[{}]}'),
        '{"_id":"A","date":"{i}Z","host":"n1","service":"kernel","message":{j}}',
    ],
    "clouds": [
        (
            '{"labels":{"compute.googleapis.com/resource_name":"n1"},"jsonPayload":{"message":{j}},"timestamp":"{i}Z"}',
            ",\n",
            "[{}]",
        ),
        ('{"logStreamName":"n1","timestamp":{s}000,"message":{j},"eventId":"1"}', ",", '{"events":[{}]}'),
        ('{t}.123,n1,"{q}"', "\n", "@timestamp,@logStream,@message\n{}"),
        ('"{a}",n1,kern,"{q}"', "\n", "TimeGenerated [UTC],Computer,Facility,SyslogMessage\n{}"),
        (
            '{"timeUnixNano":"{s}123456789","body":{"stringValue":{j}}}',
            ",",
            '{"resourceLogs":[{"resource":' + OTLP_HOST + ',"scopeLogs":[{"logRecords":[{}]}]}]}',
        ),
    ],
    "Graylog, Telegraf": [
        ('{i}.123Z,n1,"{q}"', "\n", "timestamp,source,message\n{}"),
        '{"version":"1.1","host":"n1","short_message":{j},"timestamp":{s}.5,"level":4,"_facility":"kern"}',
        '{"fields":{"message":{j}},"tags":{"host":"relay","hostname":"n1"},"name":"syslog","timestamp":{s}}',
    ],
    "any table": [
        ('n1,{i}Z,"{q}"', "\n", "node,time,message\n{}"),
        ('n1;{s};"{q}"', "\n", "host;time;msg\n{}"),
        ('n1,{i}Z,,"{q}"', "\n", "node,time,code,message\n{}"),
    ],
    "Kubernetes": [
        (
            '{"involvedObject":{"kind":"Node","name":"n1"},"reason":"KernelLine","message":{j},"type":"Warning",'
            '"firstTimestamp":"{i}Z","lastTimestamp":"{i}Z","source":{"component":"kernel-monitor","host":"n1"}}',
            ",\n",
            '{"items":[{}],"kind":"List"}',
        ),
        '{"regarding":{"kind":"Node","name":"n1"},"note":{j},"eventTime":"{i}.123456Z"}',
    ],
    "Prometheus": [],
    "gpud, NVSentinel": [],
}


def read(tmp_path, text, name="n1.log", **options):
    (tmp_path / name).write_text(text)
    return read_node_log(tmp_path / name, LogOptions(RULES, "UTC", None, NodeNames([]), 5, 604_800, **options))


def test_the_docs_list_these_forms():
    text = (ROOT / "docs" / "your-data.md").read_text(encoding="utf-8")
    table = text.partition("| form of a log |")[2].partition("\n\n")[0]
    assert [line.split("|")[1].strip() for line in table.splitlines()[2:]] == [*FORMS]


@pytest.mark.parametrize(("form", "template"), [(form, template) for form in FORMS for template in FORMS[form]])
def test_each_form_tells_the_same_error(tmp_path, form, template):
    text = render(*((template,) if isinstance(template, str) else template))
    has_start = form == "dmesg since the start"
    assert detect_layout(text.encode()).needs_boot == has_start
    logs = read(tmp_path, text, boots={"": START} if has_start else {}, end_s=NOON + 86_400)
    first = logs.errors.select("node", "gpu", "code", "time_s").row(0)
    assert first == ("n1", "0000:05:00", "XID 79", NOON + 60 * (len(logs.errors) == 1 and "\\" not in template))
    assert not logs.account.rows.keys() & {"no_time", "no_node", "no_layout"}


def test_a_line_of_the_clock_tells_the_start(tmp_path):
    clock = "[    1.200000] rtc_cmos 00:01: setting system clock to 2025-03-01T07:10:01 UTC (1740813001)\n"
    reboot = "[    0.000000] Linux version 6.8\n[   60.000000] NVRM: Xid (PCI:0000:05:00): 48, x\n"
    logs = read(tmp_path, clock + render("[{u}] {m}") + "\n" + reboot)
    assert logs.errors.select("code", "time_s").rows() == [("XID 79", NOON + 60)]
    # A later start is not known.
    assert logs.account.rows["no_time"] == 2
    with pytest.raises(StudyError, match="node_log_boot"):
        read(tmp_path, render("[{u}] {m}"))
    nodes = {"n1": START, "n2": START + 9}
    logs = read(tmp_path, render("n1: [{u}] {m}") + "\n" + render("n2: [{u}] {m}"), boots=nodes)
    assert logs.errors.select("node", "time_s").rows() == [("n1", NOON + 60), ("n2", NOON + 69)]


def metric(series):
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


@pytest.mark.parametrize(
    ("values", "labels", "expected"),
    [
        ("0 0 79 79 0 48", {}, [("XID 79", 60), ("XID 48", 150)]),
        ("31 31 31", {}, []),
        ("0 1 1 3", {"xid": "31"}, [("XID 31", 30), ("XID 31", 90)]),
        ("2 2 3", {"reason": "TaskHung"}, [("TaskHung", 60)]),
    ],
)
def test_a_metric_that_changes_is_an_error(tmp_path, values, labels, expected):
    labels = {"__name__": "DCGM_FI_DEV_XID_ERRORS", "Hostname": "n1", "gpu": "0"} | labels
    samples = [[NOON + 30 * step, value] for step, value in enumerate(values.split())]
    logs = read(tmp_path, metric([{"metric": labels, "values": samples}]))
    assert logs.errors.select("code", pl.col("time_s") - NOON).rows() == expected
    assert logs.quiet_nodes == ["n1"]


def test_a_metric_out_of_victoria_metrics(tmp_path):
    labels = {"__name__": "DCGM_FI_DEV_XID_ERRORS", "node": "n1", "gpu": "0"}
    samples = {"values": [0, 79], "timestamps": [NOON * 1000, (NOON + 30) * 1000]}
    logs = read(tmp_path, json.dumps({"metric": labels} | samples))
    assert logs.errors.select("node", "code", "time_s").rows() == [("n1", "XID 79", NOON + 30)]


@pytest.mark.parametrize(
    "text",
    [
        '{"metric":{"__name__":"DCGM_FI_DEV_XID_ERRORS"},"values":[["a",null]]}',
        '{"metric":5,"values":[],"x":"DCGM_FI_DEV_XID_ERRORS"}',
        '{"involvedObject":5}',
        '{"nodeName":"n1","checkName":5,"generatedTimestamp":[]}',
        '{"dmesg":[{"time":{"a":1}}]}',
        "__CURSOR=s\nMESSAGE",
    ],
)
def test_records_of_another_form_are_told(tmp_path, text):
    assert read(tmp_path, text).account.rows["no_time"] == 1


def test_a_metric_that_appears_later_is_an_error(tmp_path):
    labels = {"__name__": "DCGM_FI_DEV_XID_ERRORS", "instance": "n1:9400"}
    series = [
        {"metric": labels | {"pci_bus_id": f"00000000:0{gpu}:00.0"}, "values": [[NOON + 60 * gpu, "94"]]}
        for gpu in (0, 1)
    ]
    logs = read(tmp_path, metric(series))
    assert logs.errors.select("node", "gpu", "time_s").rows() == [("n1", "0000:01:00", NOON + 60)]


def test_events_of_kubernetes_about_nodes(tmp_path):
    def event(hour, reason, message, kind="Node", last=None):
        first = f"2025-03-01T{8 + hour:02d}:00:00Z"
        about = {"involvedObject": {"kind": kind, "name": "n1"}, "source": {"host": "n1"}}
        return about | {"reason": reason, "message": message, "firstTimestamp": first, "lastTimestamp": last or first}

    events = [
        event(0, "NvidiaXID48Error", "GPU 3 had a double bit error"),
        event(1, "SysLogsXIDErrorIsNotHealthy", "ErrorCode:119 PCI:0002:00:00 Recommended Action=COMPONENT_RESET;"),
        event(2, "SysLogsSXIDErrorIsNotHealthy", "ErrorCode:12028 NVSWITCH:0"),
        event(3, "XIDError", LINES[1][1], last="2025-03-01T13:00:00Z"),
        event(4, "NodeReady", "Node n1 status is now: NodeReady"),
        event(5, "Failed", "Xid 79", kind="Pod"),
    ]
    logs = read(tmp_path, json.dumps({"items": events}, indent=1))
    rows = logs.errors.select("gpu", "code", (pl.col("time_s") - NOON) / 3600).rows()
    assert rows == [
        ("3", "XID 48", 0),
        ("0002:00:00", "XID 119", 1),
        ("0000:05:00", "XID 79", 3),
        ("0000:05:00", "XID 79", 5),
    ]
    assert logs.account.rows == {"picked": 4, "unmatched": 2, "note": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{i}Z stdout F {m}", "the log of a container"),
        ('{"log":{j},"stream":"stdout","time":"{i}Z"}', "the log of a container"),
        ("[  +0.000012] {m}", "steps from line to line"),
        ("LAST SEEN   TYPE      REASON\n2m  Warning  x", "kubectl get events -o json"),
        ('{"time":"{i}Z","message":{j}}', "jq -c"),
        ("time,message\n{i}Z,x", "Add a column node"),
        ("time={i}Z host=n1 msg={j}", ""),
        ("16:24:18 n1 kernel: {m}", "without a node"),
        ('{"time":"{i}Z","hostname":"web-1","level":"info","msg":"hello"}', "name no node"),
    ],
)
def test_what_names_no_node_is_refused_with_the_way_out(text, words):
    content = render(text).encode()
    assert detect_layout(content) is None
    assert words in describe_unread_form(content)
