"""Write docs/tables.md, the data dictionary, from the contracts of the tables.

usage: tables.py FILE   (make docs)
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from ttf.page.publish.dictionary import group_by_analysis, to_markdown

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(to_markdown(group_by_analysis()), encoding="utf-8")
