"""Describe the keys of metrics.json in docs/metrics.md, from finished studies.

usage: metrics.py FILE METRICS.JSON ...   (make docs, after ttf report --trace all)
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

INTRODUCTION = """\
# Numbers

Every number of the text is in `results/<trace>/metrics.json` under a key, with its unit, its n and its source table.
The page shows the key when you point at a number. Braces list alternative names; `…` stands for further names, such as
users or GPU types. A trace has only the keys that its records allow; a number that cannot be computed is absent.

`_s` means seconds, `_share` a fraction of 1. The bounds of intervals are not listed: `ci_low` and `ci_high` are the
exact 95% CI. With `_clustered` they are the CI that allows for correlated failures, by `cluster_by`, with `clusters`
effective clusters.

`changes.<measure>` describes the last part of a trace in parts, each measure in its own unit: `failure_share`,
`infra_rate`, `scheduled_ettr`, `lost_time`, `suspect_nodes`, `failure_words`. Its `verdict` is `changed`, `within
chance`, `too few to tell` or `too few weeks to tell`. `low` and `high` are the 95% CI of its `difference`;
`detectable_ratio` is the change detected with 80% power. In `forecast.<what>` they are the 90% prediction interval.

Made by `make docs` from the studies of the samples.
"""
MOST_NAMES = 4
# Branches with at least this share of common keys are merged.
COMMON_SHARE = 0.5
# Bounds of intervals, and their clustering.
INTERVAL_KEYS = re.compile(r".*(ci|failure_share|median)_(low|high)(_.*)?|cluster_by|clusters")
Facts = tuple[str, str, str]


def merge_branches(facts_by_key: Iterable[tuple[tuple[str, ...], Facts]]) -> dict[tuple[str, ...], Facts]:
    """Merge branches with similar subkeys; keys are tuples of their parts."""
    keys = dict(facts_by_key)
    branches: list[tuple[list[str], dict]] = []
    merged = {key: facts for key, facts in keys.items() if len(key) == 1}
    longer = sorted(((key, facts) for key, facts in keys.items() if len(key) > 1), key=lambda pair: pair[0][0])
    for name, subkeys in groupby(longer, key=lambda pair: pair[0][0]):
        subkeys = merge_branches((key[1:], facts) for key, facts in subkeys)
        for names, branch_keys in branches:
            if len(branch_keys.keys() & subkeys.keys()) >= COMMON_SHARE * len(branch_keys.keys() | subkeys.keys()):
                names.append(name)
                branch_keys.update(subkeys)
                break
        else:
            branches.append(([name], subkeys))
    for names, subkeys in branches:
        merged |= {(braces(names), *key): facts for key, facts in subkeys.items()}
    return merged


def braces(names: list[str]) -> str:
    shown = names if len(names) <= MOST_NAMES else [*names[: MOST_NAMES - 1], "…"]
    return names[0] if len(names) == 1 else "{" + ",".join(shown) + "}"


def text(studies: Iterable[Mapping[str, Mapping]]) -> str:
    names = ("unit", "source", "definition")
    keys = {key: tuple(number[name] for name in names) for study in studies for key, number in study.items()}
    lines = [INTRODUCTION]
    parts = ((tuple(key.split(".")), facts) for key, facts in keys.items())
    merged = merge_branches((key, facts) for key, facts in parts if not INTERVAL_KEYS.fullmatch(key[-1]))
    for first, rows in groupby(sorted(merged.items()), key=lambda row: row[0][0]):
        lines += [f"## {first}", "", "| key | unit | meaning | table |", "| --- | --- | --- | --- |"]
        for key, (unit, source, definition) in rows:
            cells = (f"`{'.'.join(key)}`", unit, definition, source)
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    file, *indexes = map(Path, sys.argv[1:])
    if indexes := [path for path in indexes if path.is_file()]:
        file.write_text(text(json.loads(path.read_text(encoding="utf-8")) for path in indexes), encoding="utf-8")
    else:
        print(f"{file} is unchanged: it needs studies of the samples, ttf report --trace all", file=sys.stderr)
