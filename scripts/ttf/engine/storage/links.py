"""Names that Snakemake can take: in a path it takes what stands in braces, or between < and >, for a name of its own.

A folder or a file called so is known to it by a link in the working folder, and to people by its own name.
"""

import os
import re
from hashlib import sha256
from pathlib import Path

LINKS = Path(".snakemake", "links")
_START = f"{LINKS}/"
_NOT_TO_TAKE = set("{}<>")


def linked(path: str) -> str:
    """The path; one that Snakemake cannot take as another to the same place, through a link that is made here."""
    parts = Path(path).parts
    odd = [count for count, part in enumerate(parts, 1) if _NOT_TO_TAKE.intersection(part)]
    if not odd:
        return path
    place, rest = Path(*parts[: odd[-1]]), parts[odd[-1] :]
    # The name of a file tells how it is packed.
    name = re.sub(r"[^A-Za-z0-9._-]", "_", place.name)
    link = LINKS / f"{sha256(os.fsencode(place)).hexdigest()[:12]}-{name}"
    if not link.is_symlink() or link.readlink() != place.absolute():
        LINKS.mkdir(parents=True, exist_ok=True)
        made = LINKS / f"{link.name}.{os.getpid()}"
        made.symlink_to(place.absolute())
        made.replace(link)
    return str(link.joinpath(*rest))


def own_name(path: str) -> str:
    """A path that goes through such a link, as it is called: from here, or in full; any other as it stands."""
    if not path.startswith(_START):
        return path
    link, _, rest = path.removeprefix(_START).partition("/")
    place, here = (LINKS / link).readlink() / rest, Path.cwd()
    return str(place.relative_to(here) if place.is_relative_to(here) else place)


def by_own_names(inputs: list) -> list:
    """The inputs of a rule, Snakemake's list with names, each as it is called."""
    if not (isinstance(inputs, list) and any(path.startswith(_START) for path in inputs)):
        return inputs
    return type(inputs)(toclone=inputs, custom_map=own_name)
