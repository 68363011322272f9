"""Format node names as a Slurm hostlist: n[001-003,007],gpu1."""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby

# The trace is untrusted and the list goes on a command line, so only these names are allowed. ALL is every node.
SAFE_NAME = re.compile(r"(?![Aa][Ll][Ll]\Z)[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")


def is_safe(name: str) -> bool:
    """Return whether a shell, and Slurm, take the name for that of one node."""
    return SAFE_NAME.fullmatch(name) is not None


def hostlist(names: Iterable[str]) -> str:
    """Return the distinct names in order, with numbers of one width grouped; names that are not safe are omitted."""
    groups = defaultdict(list)
    for name in sorted({*filter(is_safe, names)}):
        match = _NUMBERED.fullmatch(name)
        prefix, digits = match.groups() if match else (name, "")
        groups[prefix, len(digits)].append(digits)
    return ",".join(
        f"{prefix}{_format_range(digits) if width else ''}" for (prefix, width), digits in sorted(groups.items())
    )


def _format_range(digits: list[str]) -> str:
    """Return [001-003,007], or a single number without brackets; digits: of one width, ascending."""
    if len(digits) == 1:
        return digits[0]
    runs = groupby(enumerate(digits), key=lambda pair: int(pair[1]) - pair[0])
    groups = [[digit for _, digit in run] for _, run in runs]
    return f"[{','.join(run[0] if len(run) == 1 else f'{run[0]}-{run[-1]}' for run in groups)}]"
