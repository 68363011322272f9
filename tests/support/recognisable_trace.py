"""A dump of Slurm's accounting with recognisable names of users, accounts, nodes, files and in reasons."""

import random
import string
from pathlib import Path

from samples.sacct.sample import write_sample
from ttf.formats.sacct.hostlist import expand


class Names(dict):
    """Random 12-letter name, unique in all outputs, by name of the sample."""

    def __missing__(self, name: str) -> str:
        letters = random.Random(f"of {name}")
        self[name] = "".join(letters.choices(string.ascii_lowercase, k=12))
        return self[name]

    def nodes(self, text: str) -> str:
        return ",".join(self[node] for node in expand(text)) if text[:1] == "n" and text[1:2] in "[0123456789" else text


def write(parent: Path) -> tuple[dict, set[str]]:
    """Write dumps, node and health events below `parent`; return the registry entry and the names in them."""
    names = Names()
    folder = parent / names["a folder"]
    folder.mkdir(parents=True)
    write_sample(folder, jobs=300, seed=2)
    for dump in sorted(folder.glob("2025-*.txt")):
        _rewrite(dump, {"User": names, "Account": names, "NodeList": names.nodes, "FailedNode": names.nodes}, names)
        _one_more(dump, "State", names["a state"])
        dump.rename(dump.with_name(f"{names[dump.name]}.txt"))
    events = [parent / f"{names[name]}.txt" for name in ("nodes", "cluster")]
    for name, file in zip(("node_events.txt", "cluster_events.txt"), events, strict=True):
        (folder / name).rename(file)

    def reason(text: str) -> str:
        return text if "Registered" in text or not text else f"{text}, says {names['somebody']}"

    _rewrite(events[0], {"NodeName": names.nodes, "Reason": reason, "User": lambda text: f"{names[text]}(1007)"}, names)
    _rewrite(events[1], {"Cluster Nodes": names.nodes}, names)
    health = parent / f"{names['health']}.csv"
    _rewrite(folder / "health_events.csv", {"node": names.nodes}, names, ",")
    (folder / "health_events.csv").rename(health)
    entry = {"format": "sacct", "folder": str(folder), "health_events": str(health)}
    return entry | {"node_events": [str(file) for file in events]}, set(names.values())


def _one_more(dump: Path, column: str, value: str) -> None:
    header, *_, last_line = dump.read_text().splitlines()
    row = last_line.split("|")
    row[header.split("|").index(column)] = value
    dump.write_text(dump.read_text() + "|".join(row) + "\n")


def _rewrite(file: Path, columns: dict, names: Names, delimiter: str = "|") -> None:
    header, *lines = file.read_text().splitlines()
    replacements = {index: columns[name] for index, name in enumerate(header.split(delimiter)) if name in columns}
    rows = [line.split(delimiter) for line in lines]
    for row in rows:
        for index, replacement in replacements.items():
            if row[index]:
                row[index] = replacement[row[index]] if isinstance(replacement, Names) else replacement(row[index])
    file.write_text("\n".join([header, *(delimiter.join(row) for row in rows)]) + "\n")
