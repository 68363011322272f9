"""config/README.md, written from the schemas so that it cannot say something else.

python workflow/study/config_docs.py           prints it
python workflow/study/config_docs.py --write   writes it
"""

import sys
from collections.abc import Iterator
from pathlib import Path

if not __package__:  # started as a file: this folder, not its parent, is on the path
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:1] = [str(ROOT / "workflow"), str(ROOT / "scripts")]

from study.config import SCHEMA, entry_of
from study.documents import flow, key_paths, kind, limits

README = Path(__file__).resolve().parents[2] / "config" / "README.md"
COMMAND = "python workflow/study/config_docs.py --write"

INTRODUCTION = f"""\
<!-- Written by `{COMMAND}` from workflow/schemas/ and config.yaml; edit those. -->

# Configuration

`config.yaml` holds the defaults and `traces.yaml` the registry of traces. Leave both as they are and write what
you change into a file of your own: `make report CONFIG=my.yaml`, or `snakemake --configfile my.yaml`. Single settings
also go on the command line: `snakemake --config 'survival={{max_steps: 500}}'`. What is given later wins:
`config.yaml`, then the files of `--configfile` in their order, then `--config`. Mappings are merged key by key; a list
or a single value replaces what stood there. What is not listed below stops the run before it starts, with a line for
each problem that names the file, the key and what is allowed.

## Ten recipes

Each is a whole file `my.yaml` for `make report CONFIG=my.yaml`; put together what you need of several.

**My Slurm cluster.** The dumps of `sacct` in a folder, and what the page says of them:

```yaml
study: [mine]
registry:
  mine: {{format: sacct, folder: my_slurm, title: Our cluster, source: our own accounting}}
```

**Several traces**, a page each and a comparison. The entry `openb` keeps its other keys:

```yaml
name: ours_and_theirs
study: [mine, openb]
registry:
  mine: {{format: sacct, folder: my_slurm}}
  openb: {{folder: /data/traces/openb, files: {{pods: pods_2023.csv}}}}
```

**Other words for infrastructure failures**, and health checks of the nodes:

```yaml
study: [mine]
registry:
  mine: {{format: sacct, folder: my_slurm, health_events: checks/failed.csv}}
infra_failures:
  states: [NODE_FAIL, BOOT_FAIL]
  reasons: [Prolog error]
  exit_codes: ["0:53"]
  events: {{severities: [high]}}
```

**Another target size and other habits**: a month of work on 512 GPUs, a checkpoint every half hour:

```yaml
study: [mine]
registry:
  mine: {{format: sacct, folder: my_slurm}}
ettr: {{target_gpus: 512, productive_s: 2592000, checkpoint_intervals_s: [1800], checkpoint_write_s: 60}}
```

**Targets**, which the tiles are then held against:

```yaml
study: [mine]
registry:
  mine: {{format: sacct, folder: my_slurm}}
targets: {{failure_rate: 0.2, mttf_h: 24, ettr: 0.9}}
```

**Failure reasons of my own**, from a reason column, exit codes and the ends of logs; `my_reasons.yaml` has the layout
of `taxonomy.yaml`:

```yaml
study: [mine]
registry:
  mine: {{format: sacct, folder: my_slurm, log_tails: logs/tails.jsonl}}
taxonomy: my_reasons.yaml
```

**A table of another system.** Which column is what, how times are written, which words mean what:

```yaml
study: [mine]
registry:
  mine:
    format: table
    folder: exports
    mapping: {{job_id: id, user: owner, submit: queued, start: started, end: ended, status: state, gpus: gpus}}
    times: {{format: "%Y-%m-%d %H:%M:%S", zone: Europe/Berlin}}
    outcomes: {{success: [done], failure: [failed], cancelled: [killed], running: [running]}}
    infra_failures: {{states: [node_lost]}}
```

**A trace that grows**: a new file every week, compared with all before it:

```yaml
study: [mine]
registry:
  mine: {{format: sacct, folder: my_slurm, windows: {{by: part}}}}
```

**A large trace on a cluster**, in 16 jobs; add `PROFILE=slurm` to the command. The results are the same:

```yaml
study: [pai2020]
scatter: {{jobs: 16, above_mb: 500}}
```

**A larger sample**, under a name of its own beside the usual one:

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
`results/` under this name, so that three names are taken: all, comparison, studies.
`format` is required, and one of `folder` and `generate`.
"""


def render() -> str:
    """The text of config/README.md."""
    keys = SCHEMA["properties"].items()
    groups = [
        f"## `{key}`\n\n{part['description']}\n\n" + _table(key_paths(part))
        for key, part in keys
        if "properties" in part
    ]
    top = "## What to run\n\n" + _table(((key,), part) for key, part in keys if "properties" not in part)
    return "\n".join([INTRODUCTION, top, *groups, ENTRY + "\n" + _table(key_paths(entry_of(SCHEMA)))])


def _table(keys: Iterator[tuple[tuple[str, ...], dict]]) -> str:
    """A table with a row for each key."""
    rows = [["key", "meaning", "type", "default", "allowed"], ["---"] * 5]
    for path, part in keys:
        # The names under `files` are described where `files` is.
        meaning = part.get("description", "The file of the table with this name.")
        default = f"`{flow(part['default'])}`" if "default" in part else ""
        rows.append([f"`{'.'.join(path)}`", meaning, kind(part), default, limits(part)])
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        README.write_text(render(), encoding="utf-8")
    else:
        print(render(), end="")
