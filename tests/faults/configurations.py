"""Mutated configurations: damage to YAML files by people, editors and attackers, and the study's answers.

`mutated(seed, n)` yields them reproducibly; `checked` judges one: accepted, refused with a useful message, or a fault.
"""

import contextlib
import copy
import functools
import os
import random
import re
import signal
import tempfile
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from faults.verdict import Verdict, fault_of_message
from study_runs import ROOT

# Limits of processor time, and of wall time for a case that waits forever.
MOST_SECONDS, HANGING_S = 5, 30
MY = "my.yaml"

# What is mutated ------------------------------------------------------------------------------------------------

_TABLE = {
    "format": "table",
    "folder": "raw",
    "mapping": {"job_id": "id", "start": "began", "runtime": {"column": "took", "unit": "min"}, "status": "state"},
    "times": {"format": "%Y-%m-%d %H:%M:%S", "zone": "America/Denver"},
    "outcomes": {"success": ["COMPLETED"], "failure": ["FAILED", "TIMEOUT"], "cancelled": ["CANCELLED"]},
    "blank": ["NA", "None"],
    "delimiter": ",",
    "unique_ids": True,
    "windows": {"by": "week"},
}
CONFIGURATIONS: list[dict] = [
    {
        "study": ["mine"],
        "registry": {"mine": {"format": "pai2020", "embedded": True, "synthetic": True}},
        "name": "weekly",
    },
    {
        "study": ["sample", "mine"],
        "registry": {"mine": _TABLE},
        "quarantine": {"max_share": 0.2},
        "correlation": {"cutoffs_s": [3600, 60], "significance": 0.01},
        "ettr": {"gpus": [1, 8, 64], "simulations": 100, "target_gpus": 64},
        "targets": {"failure_rate": 0.2, "scheduled_ettr": 0.9},
    },
    {
        "study": ["sample_slurm", "sample_philly"],
        "registry": {"sample_slurm": {"health_events": "data/sample_slurm/health_events.csv"}},
        "taxonomy": "own_taxonomy.yaml",
        "outage_causes": "own_outage_causes.yaml",
        "node_log_rules": "own_node_log_rules.yaml",
        "claims": ["own_claims.yaml"],
        "infra_failures": {"states": ["NODE_FAIL"]},
        "ledger": {"price_per_gpu_hour": 2.5, "currency": "EUR"},
        "publish": {"creators": [{"name": "Doe, Jane"}], "date": "2025-01-31", "url": "https://example.org/a"},
    },
    {
        "study": ["pods"],
        "registry": {
            "pods": {
                "format": "openb",
                "folder": "pods",
                "schema": "own_schema.yaml",
                "log_tails": "raw/jobs.csv",
                "loss_log": "raw/jobs.csv",
                "files": {"pods": "openb_pod_list_default.csv"},
            }
        },
        "analyses": ["folder"],
        "claims": ["own_claims.yaml"],
    },
]
# Keys that name files or folders.
_FILES = {
    "taxonomy",
    "outage_causes",
    "node_log_rules",
    "claims",
    "analyses",
    "schema",
    "log_tails",
    "loss_log",
    "health_events",
    "folder",
}
# Files that a configuration names; some mutations change one of these instead of the configuration.
NAMED: dict[str, dict] = {
    "taxonomy": {
        "reasons": {"Tea": {"domain": ["user program"], "category": ["U"], "deterministic": False}},
        "rules": [{"reason": "Tea", "text": ["^tea$", r"kettle\b"], "exit_code": ["41"]}],
    },
    "outage_causes": {"rules": [{"class": ["^Change$"], "planned": True}, {"cause": ["dimm"], "part": "Memory"}]},
    "node_log_rules": {
        "rules": [{"pattern": "^fault (?P<code>[0-9]+)", "code": "FAULT", "component": "GPU", "source": "us"}],
        "codes": {"XID 79": {"name": "Cable", "component": "PCIe", "severity": "warning", "source": "us"}},
    },
    "claims": {
        "sources": {"mine": "A study of our own"},
        "claims": [
            {
                "id": "mine-failures",
                "trace": "sample",
                "source": "mine",
                "statement": "MTTF.",
                "published": 100,
                "unit": "s",
                "evidence": "printed",
                "quantity": {"table": "mttf", "where": {"stratum": "all"}, "column": "mttf_s"},
                "tolerance": 1000,
                "why": "an example",
            }
        ],
    },
}
# Special files in the folder of a study (`prepared`).
PLACES = ("fifo", "zero", "folder", "loop", "dangling", "empty", "binary", "utf16", "huge", "list", "unreadable")

_PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"

# Values that few keys accept -------------------------------------------------------------------------

_VALUES: list[Any] = [None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, 5e-324]
_VALUES += [float("nan"), float("inf"), float("-inf"), "", " ", "no", "null", "~", "0", "1e3", "a" * 10_000]
_VALUES += ["\u202egpj.exe", "\u0000", "\x1b[31mred", "ŞİıŁß", "💥" * 9, "a\nb", "{a}", "{{x}}", "$(touch owned)"]
_VALUES += ["'; touch owned; '", "../../..", "/", "-rf", "/dev/stdin", "/proc/self/mem", "a" * 300 + "/b", "?1+1"]
_VALUES += [[], {}, [[]], [{}], [None], [1, "a", None, {}], {"a": {"b": {"c": 1}}}, {1: 2}, {None: None}]
_VALUES += [yaml.safe_load(text) for text in ("2020-01-31", "2020-01-31 10:00:00+02:00", "!!binary aGk=")]
_VALUES += [*PLACES, *(f"./{path}" for path in PLACES), "nothing.yaml", "own_claims.yaml", "raw/jobs.csv"]
_VALUES += [["wrong"] * 5000, list(range(20_000)), {f"key{number}": number for number in range(3000)}]

# Plain scalars, inserted into the text verbatim.
_SCALARS = ["017", "0o17", "0x1F", "0b11", "1_000", "190:20:30", "1:" * 50 + "1", ".inf", "-.INF", ".nan", "=", "<<"]
_SCALARS += [
    "2020-13-45",
    "2020-02-30",
    "1e999",
    "1" * 5000,
    "1" * 1_000_000,
    "0x" + "f" * 300_000,
    "1:" * 200_000 + "1",
]
_SCALARS += ["!!int x", "!!float x", "!!bool x", "!!timestamp x", "!!null x", "!!set {a, b}", "!!omap [a: 1]"]
_SCALARS += ["!!binary '*'", "!!python/object:os.system [id]", "!!python/object/apply:os.getcwd []", "!foo bar"]
_SCALARS += ["!!python/name:os.system", "!!python/tuple [1]", "!<tag:x> 1", "*nowhere", "&a [*a]", "&a {b: *a}"]
_SCALARS += ["@at", "`tick`", "%x", "'open", '"open', "[", "{", "]", "}", "[1, 2", "{a: 1", "|", ">-", "? [a]", "- -"]
_SCALARS += ['"\\ud800"', '"\\x1b[2J"', '"\\N"', "[" * 50_000, "{a: " * 20_000, "[" * 200 + "]" * 200, "\t1", "# gone"]

_ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp037", "utf-7", "shift_jis")


def _bomb(width: int, levels: int, merge: bool = False) -> str:
    lines = ["a0: &a0 {x: 1}" if merge else "a0: &a0 [x]"]
    for level in range(1, levels + 1):
        aliases = ", ".join([f"*a{level - 1}"] * width)
        value = f"{{<<: [{aliases}], y{level}: 1}}" if merge else f"[{aliases}]"
        lines.append(f"a{level}: &a{level} {value}")
    return "\n".join(lines) + "\n"


# Mutations: of the values, and of the text ----------------------------------------------------------------------

Path_ = tuple[Any, ...]


def _paths(value: Any, parent_path: Path_ = ()) -> Iterator[Path_]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*parent_path, key)
        yield from _paths(item, (*parent_path, key))


def _value_at(document: Any, path: Path_) -> Any:
    for key in path:
        document = document[key]
    return document


def _mutate_values(draw: random.Random, document: dict) -> tuple[str, dict]:
    """Return (description, document) after one mutation of its values."""
    document = copy.deepcopy(document)
    path = draw.choice(list(_paths(document)))
    parent, key = _value_at(document, path[:-1]), path[-1]
    mutation = draw.choice(
        ("set", "set", "set", "delete", "misspell", "swap", "wrap", "number", "many", "move", "place")
    )
    files = [path for path in _paths(document) if path[-1] in _FILES]
    if mutation == "place" and files:
        path, special_path = draw.choice(files), draw.choice(PLACES)
        _value_at(document, path[:-1])[path[-1]] = (
            [special_path] if path[-1] in ("claims", "analyses") else special_path
        )
        return f"{'.'.join(map(str, path))} is {special_path}", document
    if mutation == "set":
        parent[key] = draw.choice(_VALUES)
    elif mutation == "delete":
        del parent[key]
    elif mutation == "misspell" and isinstance(key, str):
        position = draw.randrange(len(key) + 1)
        wrong = (
            key[:position]
            + draw.choice(["", "x", "_", "-", " ", "é", "\u200b", "K"])
            + key[position + draw.randrange(2) :]
        )
        parent[wrong] = parent.pop(key)
    elif mutation == "swap":
        other_path = draw.choice(list(_paths(document)))
        with contextlib.suppress(KeyError, IndexError, TypeError):  # one may hold the other
            value, other_value = (copy.deepcopy(_value_at(document, key_path)) for key_path in (path, other_path))
            parent[key] = other_value
            _value_at(document, other_path[:-1])[other_path[-1]] = value
    elif mutation == "wrap":
        parent[key] = draw.choice([[parent[key]], {"value": parent[key]}, str(parent[key]), [parent[key]] * 2])
    elif mutation == "number" and isinstance(parent[key], int | float):
        parent[key] = draw.choice(
            [-parent[key], parent[key] * 10**6, parent[key] + 0.5, str(parent[key]), parent[key] / 3]
        )
    elif mutation == "many":
        parent[key] = [copy.deepcopy(parent[key]) for _ in range(1000)]
    elif mutation == "move":
        document[f"{key}"] = parent.pop(key) if isinstance(parent, dict) else parent.pop()
    return f"{mutation} {'.'.join(map(str, path))}", document


def _mutate_text(draw: random.Random, text: str) -> tuple[str, bytes]:
    """Return (description, content) after one mutation of its text."""
    lines = text.splitlines(keepends=True)
    position, line = draw.randrange(len(text)), draw.randrange(len(lines))
    mutations: dict[str, Callable[[], str | bytes]] = {
        "tab": lambda: "".join([*lines[:line], "\t" + lines[line], *lines[line + 1 :]]),
        "tabs": lambda: text.replace("  ", "\t"),
        "cut": lambda: text[:position],
        "insert": lambda: (
            text[:position] + draw.choice("[]{}:,&*#?|-<>=!%@\\\"'`\0\x07\x85\u2028\ufeff\n ") + text[position:]
        ),
        "delete": lambda: text[:position] + text[position + draw.randint(1, 4) :],
        "twice": lambda: "".join([*lines[: line + 1], *lines[line:]]),
        "swapped lines": lambda: "".join([*lines[:line], *reversed(lines[line : line + 2]), *lines[line + 2 :]]),
        "indented": lambda: "".join([*lines[:line], " " + lines[line], *lines[line + 1 :]]),
        "written": lambda: re.sub(
            r"(?<=: )[^\s\[{&!|>].*", lambda _: draw.choice(_SCALARS), text, count=draw.randint(1, 3)
        ),
        "written below": lambda: f"{text}extra: {draw.choice(_SCALARS)}\n",
        "encoding": lambda: (text + "# ü ş\n").encode(draw.choice(_ENCODINGS), "replace"),
        "bytes": lambda: text[:position].encode() + draw.randbytes(draw.randint(1, 30)) + text[position:].encode(),
        "carriage returns": lambda: text.replace("\n", draw.choice(["\r", "\r\n", "\u2028"])),
        "nothing": lambda: draw.choice(
            ["", "\n", "# only a comment\n", "---\n", "---\n...\n", "\ufeff", " ", "~", "{}"]
        ),
        "list": lambda: "".join(f"- {part}" if not part[0].isspace() else f"  {part}" for part in lines),
        "another top": lambda: draw.choice(
            ["study", "42", "[1, 2]", "[]", '"text"', "2020-01-01", "!!set {a}", "null"]
        ),
        "documents": lambda: f"{text}---\n{text}",
        "directive": lambda: draw.choice(["%YAML 9.9\n---\n", "%TAG ! x\n---\n", "%what\n---\n"]) + text,
        "template": lambda: f"__use_yte__: true\n__definitions__:\n  - open('owned', 'w')\n{text}",
        "expression": lambda: f"__use_yte__: true\nname: ?open('owned', 'w')\n{text}",
        "bomb": lambda: text + _bomb(draw.choice([2, 9, 10, 50]), draw.choice([3, 9, 30])),
        "bomb of merges": lambda: text + _bomb(draw.choice([2, 9, 10]), draw.choice([3, 9, 30]), merge=True),
        "merge": lambda: (
            f"base: &base {{seed: 3}}\n{text}more: {{<<: {draw.choice(['*base', '[*base]', '3', '*x'])}}}\n"
        ),
        "deep": lambda: text + draw.choice(["x: " + "- " * 50_000, "? " * 30_000, "x: " + "{a: " * 30_000]),
        "steps": lambda: text + "x:\n" + "".join(" " * depth + "a:\n" for depth in range(1, draw.choice([50, 2000]))),
        "large": lambda: text + draw.choice(["# x\n", "- x\n", "a: [x, x, x]\n", "x"]) * draw.choice([10**5, 10**6]),
        "keys": lambda: text + "".join(f"key{number}: {number}\n" for number in range(5000)),
        "wrong values": lambda: f"{text}claims: [{', '.join(['1'] * 5000)}]\n",
        "json": lambda: draw.choice(
            ['{"study": ["sample"]', '{"study": ["sample"], "study": [NaN]}', '{"a": 1e999}', "["]
        ),
    }
    name = draw.choice(list(mutations))
    content = mutations[name]()
    return name, content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")


def mutated(seed: int, n: int) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of n reproducible mutated files. The name has the kind, `config` or one of NAMED, and the
    mutations.
    """
    for number in range(n):
        draw = random.Random(f"{seed}/{number}")
        file = draw.choice(["config", "config", "config", *NAMED])
        document = copy.deepcopy(draw.choice(CONFIGURATIONS) if file == "config" else NAMED[file])
        mutations = []
        for _ in range(draw.choice([0, 1, 1, 2, 5])):
            if not (list(_paths(document))):
                break
            mutation, document = _mutate_values(draw, document)
            mutations.append(mutation)
        text = _dumped(document, draw.choice([None, False, True]))
        content = text.encode("utf-8", "surrogatepass")
        if not mutations or draw.random() < 0.3:
            mutation, content = _mutate_text(draw, text)
            mutations.append(mutation)
        yield f"{file}/{seed}-{number} {', '.join(mutations)}", content


def _dumped(document: Any, flow: bool | None) -> str:
    # PyYAML writes a repeated value with an anchor and an alias.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow)


# The study's answers ---------------------------------------------------------------------------------------------


class _TooLong(BaseException):
    pass


def prepared(folder: Path) -> Path:
    """Fill the folder with the data and special files that configurations name."""
    (folder / "raw").mkdir(parents=True)
    (folder / "raw" / "jobs.csv").write_text("id,began,took,state\n1,2025-01-01 00:00:00,5,COMPLETED\n")
    (folder / "pods").mkdir()
    (folder / "pods" / "openb_pod_list_default.csv").write_text(f"{_PODS}\n")
    declared = (ROOT / "scripts" / "ttf" / "formats" / "openb.yaml").read_text(encoding="utf-8")
    (folder / "own_schema.yaml").write_text(textwrap.dedent(declared.partition("\nschema:\n")[2]))
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "empty").touch()
    (folder / "binary").write_bytes(bytes(range(256)) * 10)
    (folder / "utf16").write_bytes("rules: []\n".encode("utf-16"))
    (folder / "list").write_text("- a\n- b\n")
    with (folder / "huge").open("wb") as file:
        file.truncate(3_000_000_000_000)
    (folder / "unreadable").write_text("rules: []\n")
    (folder / "unreadable").chmod(0)
    for name, document in NAMED.items():
        (folder / f"own_{name}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    return folder


def checked(name: str, content: bytes, folder: Path) -> Verdict:
    """Judge a file of `mutated` in a `prepared` folder, in the main thread of this process.

    Faults: an unexpected exception; a message that is unusable or names no file; more than 5 s of processor time;
    execution of code in the file.
    """
    file, label = name.partition("/")[0], MY
    if file == "config":
        (folder / MY).write_bytes(content)
    else:
        label = f"mutated_{file}.yaml"
        (folder / label).write_bytes(content)
        names = [label] if file == "claims" else label
        (folder / MY).write_text(yaml.safe_dump({"study": ["sample"], file: names}))
    start = time.process_time()
    previous = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, HANGING_S)
    message = ""
    try:
        with contextlib.chdir(folder):
            message = _start_message()
        fault = _fault_of(message, folder, label if file != "config" else "")
    except _TooLong:
        fault = f"hang: more than {HANGING_S} s by the clock"
    except Exception:
        fault = f"traceback: {traceback.format_exc(limit=-6)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    if not fault and time.process_time() - start > MOST_SECONDS:
        fault = f"hang: more than {MOST_SECONDS} s of processor time"
    return Verdict("configuration", name, "fault" if fault else "refused" if message else "accepted", fault or message)


def cases(seed: int, count: int) -> Iterator[tuple]:
    for name, content in mutated(seed, count):
        yield "configuration", name, content


def judge(case: tuple) -> Verdict:
    _, name, content = case
    return checked(name, content, _prepared_once())


@functools.cache
def _prepared_once() -> Path:
    return prepared(Path(tempfile.mkdtemp(prefix="fault-")) / "study")


def _stop(*_: Any) -> None:
    raise _TooLong


def _start_message() -> str:
    """Start a run here and return the message about the configuration, or ""."""
    from snakemake.common.configfile import load_configfile
    from ttf.study.configuration.check import read_typed_layers
    from ttf.study.configuration.messages import ConfigError
    from ttf.study.study import Study

    try:
        layers = read_typed_layers([MY], [])
    except ConfigError as error:
        return str(error)
    # Snakemake reads every configuration that the checker accepts.
    load_configfile(Path(MY))
    try:
        Study(layers)
    except ConfigError as error:
        return str(error)
    return ""


def _fault_of(message: str, folder: Path, label: str) -> str:
    if (folder / "owned").exists():
        (folder / "owned").unlink()
        return "code: of the file was run"
    if message and any(not char.isprintable() for line in message.split("\n") for char in line):
        return f"message: cannot be printed as it is: {message[:500]!r}"
    if message and label not in message:
        return f"message: does not name the file: {message[:500]}"
    return fault_of_message(message) if message else ""
