"""docs/metrics.md: what the keys of metrics.json are made of, of finished studies, with what the contracts say of them.

usage: metrics.py FILE METRICS.JSON ...   (make docs, after make report TRACE=all)
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from ttf.page.publish.dictionary import by_analysis

INTRODUCTION = """\
# Numbers

Every number of the text stands in `results/<trace>/metrics.json` under a key, with its unit, n and the table that it is
from; the page shows the same key where you point at a number. Parts in braces are one of the names there; `…`: and
others, such as users or GPU types. Which keys a trace has depends on what it records: one that cannot be computed is
absent.

`_s` are seconds, `_share` is of 1. Not listed are the ends of intervals that stand beside a number: `ci_low` and
`ci_high` of the exact 95% CI, with `_clustered` of the one that allows for what fails alike, by `cluster_by`, of
`clusters` effective ones.

`changes.<measure>` is of the last part of a trace in parts, each measure in a unit of its own: `failure_share`,
`infra_rate`, `ettr`, `lost_time`, `suspect_nodes`, `failure_words`. Its `verdict` is `changed`, `within chance`,
`too few to tell` or `too few weeks to tell`; `low` and `high` are the 95% CI of its `difference`, `detectable_ratio`
is that of a change found with 80% power. Those of `forecast.<what>` are the ends of the 90% prediction interval.

Made by `make docs` from the studies of the samples.
"""
MOST_NAMES = 4
# Branches of as many common keys, of all of theirs, are one.
ALIKE = 0.5
# Ends of intervals, and what they are clustered by.
BESIDE = re.compile(r".*(ci|failure_share|median)_(low|high)(_.*)?|cluster_by|clusters")
Facts = tuple[str, str]


def folded(found: Iterable[tuple[tuple[str, ...], Facts]]) -> dict[tuple[str, ...], Facts]:
    """Keys in parts -> facts, with branches that have like keys below them put together."""
    keys = dict(found)
    branches: list[tuple[list[str], dict]] = []
    done = {key: facts for key, facts in keys.items() if len(key) == 1}
    longer = sorted(((key, facts) for key, facts in keys.items() if len(key) > 1), key=lambda pair: pair[0][0])
    for name, below in groupby(longer, key=lambda pair: pair[0][0]):
        below = folded((key[1:], facts) for key, facts in below)
        for names, known in branches:
            if len(known.keys() & below.keys()) >= ALIKE * len(known.keys() | below.keys()):
                names.append(name)
                known.update(below)
                break
        else:
            branches.append(([name], below))
    for names, below in branches:
        done |= {(said(names), *key): facts for key, facts in below.items()}
    return done


def said(names: list[str]) -> str:
    shown = names if len(names) <= MOST_NAMES else [*names[: MOST_NAMES - 1], "…"]
    return names[0] if len(names) == 1 else "{" + ",".join(shown) + "}"


def text(studies: Iterable[Mapping[str, Mapping]]) -> str:
    about = {table.path: table.columns for tables in by_analysis().values() for table in tables}
    keys = {key: (number["unit"], number["source"]) for study in studies for key, number in study.items()}
    lines = [INTRODUCTION]
    parts = ((tuple(key.split(".")), facts) for key, facts in keys.items())
    whole = folded((key, facts) for key, facts in parts if not BESIDE.fullmatch(key[-1]))
    for first, rows in groupby(sorted(whole.items()), key=lambda row: row[0][0]):
        lines += [f"## {first}", "", "| key | unit | what it is | from |", "| --- | --- | --- | --- |"]
        for key, (unit, source) in rows:
            column = about.get(source, {}).get(key[-1])
            cells = f"`{'.'.join(key)}`", unit, column.about if column and column.about != "As above." else "", source
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    file, *given = map(Path, sys.argv[1:])
    if given := [path for path in given if path.is_file()]:
        file.write_text(text(json.loads(path.read_text(encoding="utf-8")) for path in given), encoding="utf-8")
    else:
        print(f"{file} stays as it is: it is made from studies of the samples, make report TRACE=all", file=sys.stderr)
