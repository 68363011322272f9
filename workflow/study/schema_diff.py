"""What changed between two versions of a raw table schema, in plain words.

python workflow/study/schema_diff.py OLD NEW
"""

import sys
from pathlib import Path

if not __package__:  # started as a file: this folder's parent, not this folder, is on the path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

from ttf.quality.schema_diff import schema_diff

from study.messages import ConfigError
from study.table_schema import load_table_schema


def main(arguments: list[str]) -> int:
    """Print a sentence for each change; 0 where it could be done, 2 for wrong arguments, 1 for a file that is none."""
    if len(arguments) != 2:
        print("usage: python workflow/study/schema_diff.py OLD NEW", file=sys.stderr)
        return 2
    try:
        old, new = (load_table_schema(path) for path in arguments)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(schema_diff(old, new)) or "The two say the same.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
