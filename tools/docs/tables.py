"""Write docs/tables.md, the data dictionary, from the contracts of the tables.

usage: tables.py FILE   (make docs)
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from ttf.engine.contract import Table
from ttf.page.publish.dictionary import INTRODUCTION, column_rows, group_by_analysis


def to_markdown(groups: Mapping[str, tuple[Table, ...]]) -> str:
    """Return docs/tables.md: a heading per analysis and table, a line per column."""
    lines = ["# Tables", "", INTRODUCTION, "", "`make docs` writes this page from the contracts; a test checks it.", ""]
    for heading, tables in groups.items():
        lines += [f"## {heading}", ""]
        for table in tables:
            open_columns = ["plus the columns of the trace's format"] if table.open else []
            columns = [f"`{name}` {kind}: {meaning}" for name, kind, meaning in column_rows(table)] + open_columns
            lines += [
                f"**{table.path}** {table.description}",
                *([f"<br>{'<br>'.join(columns)}"] if columns else []),
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(to_markdown(group_by_analysis()), encoding="utf-8")
