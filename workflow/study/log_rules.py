"""The rules for nodes' logs: the shipped file and the user's own, checked before the DAG is built."""

from collections.abc import Iterator
from pathlib import Path

from study.documents import Problem, load_extended
from study.taxonomy import find_pattern_problem
from study.yaml_files import KeyPath


def load_log_rules(shipped: Path, own_path: str = "") -> dict:
    """Return `rules`, `boot`, `job_start` and `monitors`, in order, and `codes`: code -> what it means.

    own_path: the user's file, empty for none. Its rules come before the shipped rules, its codes replace shipped ones;
    with `extends: false` it stands alone. Raises ConfigError with all problems and their lines.
    """
    documents = load_extended(shipped, own_path, _find_contradictions)
    keys = ("boot", "job_start", "monitors")
    lists = {key: [item for document in documents for item in document.get(key, [])] for key in keys}
    rules = [
        {key: value for key, value in rule.items() if key != "source"}
        for document in documents
        for rule in document.get("rules", [])
    ]
    codes = {
        code: {key: value for key, value in text.items() if key not in ("name", "source")}
        for document in reversed(documents)
        for code, text in document.get("codes", {}).items()
    }
    return {"rules": rules, **lists, "codes": codes}


def _find_contradictions(document: dict, base: dict | None) -> Iterator[Problem]:
    """Yield invalid patterns, and patterns of job starts without a job; a test covers the shipped ones."""
    if base is None:
        return
    patterns: list[tuple[KeyPath, str]] = [
        ((key, n, "pattern"), rule["pattern"])
        for key in ("rules", "monitors")
        for n, rule in enumerate(document.get(key, []))
    ]
    for key in ("boot", "job_start"):
        patterns += [((key, n), pattern) for n, pattern in enumerate(document.get(key, []))]
    for path, pattern in patterns:
        if problem := find_pattern_problem(pattern):
            yield Problem(path, problem)
        elif path[0] == "job_start" and "(?P<job>" not in pattern:
            yield Problem(path, "it names no job; put (?P<job>...) around the job's id.")
