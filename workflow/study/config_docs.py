"""config/README.md, written from the two schemas so that it cannot say something else.

python workflow/study/config_docs.py           prints it
python workflow/study/config_docs.py --write   writes it
"""

import sys
from collections.abc import Iterator
from pathlib import Path

if not __package__:  # started as a file: this folder, not its parent, is on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from study.config import SCHEMA, flow, key_paths, kind, limits

README = Path(__file__).resolve().parents[2] / "config" / "README.md"
COMMAND = "python workflow/study/config_docs.py --write"

INTRODUCTION = f"""\
<!-- Written by `{COMMAND}` from workflow/schemas/; edit those. -->

# Configuration

`config.yaml` holds the defaults and `traces.yaml` the registry of traces. Leave both as they are and write what
you change into a file of your own:

    make report CONFIG=my.yaml

or, without make, `snakemake --configfile my.yaml`. Single settings can also be given on the command line, as in
`snakemake --config 'survival={{max_steps: 500}}'`. What is given later wins: `config.yaml`, then the files of
`--configfile` in their order, then `--config`. Mappings are merged key by key; a list or a single value
replaces what stood there. A key or a value that is not listed below stops the run before it starts, with a
message that names the file, the key and what is allowed; all problems are named at once.

## Examples

Your own data, in five lines:

```yaml
study: [mine]
registry:
  mine:
    format: openb
    folder: path/to/the/csv/files
```

Files with other names, and two traces in one study (the entry `openb` of the registry keeps its other keys):

```yaml
study: [openb, sample]
registry:
  openb:
    folder: /data/traces/openb
    files: {{pods: pods_2023.csv}}
```

Several traces are reported one after the other and then side by side, here one's own beside a published one. What
moved from week to week is measured too:

```yaml
study: [mine, openb]
registry:
  mine: {{format: sacct, folder: my_slurm, windows: {{by: week, against: openb}}}}
```

A larger sample. Under a name of its own, it stands beside the usual one:

```yaml
study: [large_sample]
registry:
  large_sample:
    format: pai2020
    generate: {{tasks: 1000000}}
    note: Synthetic. No finding from it says anything about a real cluster.
```
"""

ENTRY = """\
## A trace in the registry

Each entry stands under the trace's name: letters, digits, `_` and `-`. The results of the trace are written to
`results/` under this name, so that a few names are taken: comparison, config, implied_n, report, scorecard.
`format` is required, and one of `folder` and `generate`.
"""


def render() -> str:
    """The text of config/README.md."""
    registry = SCHEMA["properties"]["registry"]
    top, groups = {}, []
    for key, part in SCHEMA["properties"].items():
        if "properties" in part:
            groups.append(f"## `{key}`\n\n{part['description']}\n\n" + _table(key_paths(part)))
        else:
            top[key] = part
    entry = next(iter(registry["patternProperties"].values()))
    sections = [
        INTRODUCTION,
        "## What to run\n\n" + _table(((key,), part) for key, part in top.items()),
        *groups,
        ENTRY + "\n" + _table(key_paths(entry)),
    ]
    return "\n".join(sections)


def _table(keys: Iterator[tuple[tuple[str, ...], dict]]) -> str:
    """A table with a row for each key."""
    rows = [["key", "meaning", "type", "default", "allowed"], ["---"] * 5]
    for path, part in keys:
        default = part.get("default")
        rows.append(
            [
                f"`{'.'.join(path)}`",
                # The names under `files` are described where `files` is.
                part.get("description", "The file of the table with this name."),
                kind(part),
                "" if default is None else f"`{flow(default)}`",
                # A new format is no change of the documentation.
                "" if path == ("format",) else limits(part),
            ]
        )
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        README.write_text(render(), encoding="utf-8")
    else:
        print(render(), end="")
