"""Names of nodes as a hostlist of Slurm: n[001-003,007],gpu1."""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby

# A trace is untrusted, and the list is for a command line: no other names go into it.
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")


def hostlist(names: Iterable[str]) -> str:
    """The names, each once, in order; numbers of one width are put together. Names that are not SAFE are left out."""
    found = defaultdict(list)
    for name in sorted({name for name in names if SAFE.fullmatch(name)}):
        numbered = _NUMBERED.fullmatch(name)
        prefix, digits = numbered.groups() if numbered else (name, "")
        found[prefix, len(digits)].append(digits)
    return ",".join(f"{prefix}{_numbers(digits) if width else ''}" for (prefix, width), digits in sorted(found.items()))


def _numbers(digits: list[str]) -> str:
    """[001-003,007], or the only one without brackets. digits: of one width, ascending."""
    if len(digits) == 1:
        return digits[0]
    runs = groupby(enumerate(digits), key=lambda at: int(at[1]) - at[0])
    ends = [[digit for _, digit in run] for _, run in runs]
    return f"[{','.join(run[0] if len(run) == 1 else f'{run[0]}-{run[-1]}' for run in ends)}]"
