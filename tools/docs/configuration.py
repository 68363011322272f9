"""Write the tables of config/README.md from the schemas, below the handwritten text.

usage: configuration.py FILE   (make docs)
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from ttf.study.configuration.config import SCHEMA, get_trace_schema
from ttf.study.configuration.documents import describe_limits, describe_type, iterate_key_paths, to_inline_yaml

MARK = "<!-- From here on written by `make docs` from workflow/schemas/ and config.yaml; edit those. -->\n"
ENTRY = """\
## A trace in the registry

The key of each entry is the trace's name: letters, digits, `_` and `-`. The results of the trace are in the folder of
this name in `results/`. Two names are reserved: all, studies. `format` is required, and one of `folder`
and `generate`.

"""


def render(text: str) -> str:
    """Return the text of config/README.md with new tables."""
    keys = SCHEMA["properties"].items()
    groups = [
        f"## `{key}`\n\n{part['description']}\n\n{_table(iterate_key_paths(part))}"
        for key, part in keys
        if "properties" in part
    ]
    top = "## What to run\n\n" + _table(((key,), part) for key, part in keys if "properties" not in part)
    return text.partition(MARK)[0] + "\n".join(
        [MARK, top, *groups, ENTRY + _table(iterate_key_paths(get_trace_schema(SCHEMA)))]
    )


def _table(keys: Iterator[tuple[tuple[str, ...], dict]]) -> str:
    """Return a table with a row for each key."""
    rows = [["key", "meaning", "type", "default", "allowed"], ["---"] * 5]
    for path, part in keys:
        # The description of `files` covers the names below it.
        meaning = part.get("description", "The file of the table with this name.")
        default = f"`{to_inline_yaml(part['default'])}`" if "default" in part else ""
        rows.append([f"`{'.'.join(path)}`", meaning, describe_type(part), default, describe_limits(part)])
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(render(file.read_text(encoding="utf-8")), encoding="utf-8")
