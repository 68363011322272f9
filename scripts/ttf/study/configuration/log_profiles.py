"""The profiles of training logs: the shipped file and the user's own, checked before the DAG is built."""

from collections.abc import Iterator
from pathlib import Path

from ttf.study.configuration.documents import Problem, load_extended
from ttf.study.configuration.taxonomy import find_pattern_problem


def load_log_profiles(shipped: Path, own_path: str = "") -> dict:
    """Return `profiles`, the user's first, and `common`: kind -> patterns for any log.

    own_path: the user's file, empty for none; with `extends: false` it stands alone. Raises ConfigError with all
    problems and their lines.
    """
    documents = load_extended(shipped, own_path, _find_invalid_patterns)
    profiles, common = dict[str, dict](), dict[str, list[str]]()
    for document in documents:
        for name, kinds in document.get("profiles", {}).items():
            profiles.setdefault(name, kinds)
        for kind, patterns in document.get("common", {}).items():
            common.setdefault(kind, []).extend(patterns)
    return {"profiles": profiles, "common": common}


def _find_invalid_patterns(document: dict, base: dict | None) -> Iterator[Problem]:
    """Yield invalid patterns of a user's own file; a test covers the shipped ones."""
    named: dict[tuple[str, ...], dict] = {
        ("profiles", name): kinds for name, kinds in document.get("profiles", {}).items()
    }
    named |= {("common",): document.get("common", {})}
    for path, kinds in named.items() if base is not None else ():
        for kind, patterns in kinds.items():
            for number, pattern in enumerate(patterns) if "json" not in kinds else ():
                if problem := find_pattern_problem(pattern):
                    yield Problem((*path, kind, number), problem)
