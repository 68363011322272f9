"""Give Snakemake paths that it can take: in a path it reads text in braces, or between < and >, as a variable.

A file or folder with such a name gets a link in the working folder for Snakemake. People see its own name.
"""

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from ttf.engine.storage.plain_files import make_relative

LINKS = Path(".snakemake", "links")
_LINK_PREFIX = f"{LINKS}/"
_SPECIAL = set("{}<>")


def path_for_snakemake(path: str) -> str:
    """Return the path; if Snakemake cannot take it, create a link and return a path through it."""
    parts = Path(path).parts
    special_depths = [depth for depth, part in enumerate(parts, 1) if _SPECIAL.intersection(part)]
    if not special_depths:
        return path
    target, rest = Path(*parts[: special_depths[-1]]), parts[special_depths[-1] :]
    # The name of the link keeps the file name ending, which names the compression.
    name = re.sub(r"[^A-Za-z0-9._-]", "_", target.name)
    link = LINKS / f"{sha256(os.fsencode(target)).hexdigest()[:12]}-{name}"
    if not link.is_symlink() or link.readlink() != target.absolute():
        LINKS.mkdir(parents=True, exist_ok=True)
        new_link = LINKS / f"{link.name}.{os.getpid()}"
        new_link.symlink_to(target.absolute())
        new_link.replace(link)
    return str(link.joinpath(*rest))


def resolve_link(path: str) -> str:
    """Resolve a path through such a link, relative to the working folder if possible; return other paths unchanged."""
    if not path.startswith(_LINK_PREFIX):
        return path
    link, _, rest = path.removeprefix(_LINK_PREFIX).partition("/")
    return make_relative((LINKS / link).readlink() / rest)


def resolve_links(inputs: Any) -> Any:
    """Return the inputs of a rule with links resolved: Snakemake's named list, which has no type stubs."""
    named_list = type(inputs)
    if not (isinstance(inputs, list) and any(path.startswith(_LINK_PREFIX) for path in inputs)):
        return inputs
    return named_list(toclone=inputs, custom_map=resolve_link)
