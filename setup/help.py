"""Print the targets of the Makefile, the variables of each, and the meaning of the variables (make help).

usage: help.py MAKEFILE
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path


def read_targets(makefile: str) -> Iterator[tuple[str, list[str], str]]:
    """Return (target, variables, comment) of each target with a comment, in order of the file."""
    meanings = dict(read_variables(makefile))
    for target, comment, recipe in re.findall(r"^([\w-]+):.*?  ## (.+)\n((?:\t.*\n)*)", makefile, re.MULTILINE):
        for name, value in re.findall(r"^(\w+) = ((?:.*\\\n)*.*)$", makefile, re.MULTILINE):
            recipe = recipe.replace(f"$({name})", value)
        names = re.findall(r"\b[A-Z]+\b", recipe)
        yield target, [name for name in meanings if name in names], comment


def read_variables(makefile: str) -> list[tuple[str, str]]:
    """Return (name, meaning) of each variable that is typed, in order of the file."""
    return re.findall(r"^## ([A-Z]+)=(.+)$", makefile, re.MULTILINE)


def format_row(label: str, text: str, width: int) -> str:
    return textwrap.fill(text, 110, initial_indent=label.ljust(width), subsequent_indent=" " * width)


def main() -> None:
    makefile = Path(sys.argv[1]).read_text(encoding="utf-8")
    print("make TARGET VARIABLE=value ...\n")
    for target, names, comment in read_targets(makefile):
        print(format_row(f"  {target}", comment, 20))
        if names:
            print(format_row("", "variables: " + " ".join(names), 20))
    print()
    for name, meaning in read_variables(makefile):
        print(format_row(f"  {name}", meaning, 20))


if __name__ == "__main__":
    main()
