"""The rules for nodes' logs: the shipped file and the user's own, checked before the DAG is built."""

import re
from collections.abc import Iterator
from pathlib import Path

from ttf.study.configuration.documents import Problem, load_extended
from ttf.study.configuration.messages import show
from ttf.study.configuration.taxonomy import find_pattern_problem, find_search_error
from ttf.study.configuration.yaml_files import KeyPath


def load_log_rules(shipped: Path, own_path: str = "") -> dict:
    """Return `rules`, `multiline`, `boot`, `job_start`, `monitors`, in order, and `codes`: code -> what it means.

    own_path: the user's file, empty for none. Its rules come before the shipped rules, its codes replace shipped ones;
    with `extends: false` it stands alone. Raises ConfigError with all problems and their lines.
    """
    return _join_documents(load_extended(shipped, own_path, _find_contradictions))


def _join_documents(documents: list[dict]) -> dict:
    keys = ("multiline", "boot", "job_start", "monitors")
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
    """Yield invalid patterns, and patterns without a group that they need; a test covers the shipped ones."""
    if base is None:
        return
    patterns: list[tuple[KeyPath, str]] = [
        ((key, n, "pattern"), rule["pattern"])
        for key in ("rules", "monitors")
        for n, rule in enumerate(document.get(key, []))
    ]
    for key in ("multiline", "boot", "job_start"):
        patterns += [((key, n), pattern) for n, pattern in enumerate(document.get(key, []))]
    problems = [Problem(path, text) for path, pattern in patterns if (text := _find_problem(path[0], pattern))]
    yield from problems
    if patterns and not problems:
        from ttf.raw.node_logs.rules import Rules  # imports Polars

        joined = Rules.from_options(_join_documents([document, base])).any_pattern
        if cause := find_search_error(joined):
            text = f"its patterns cannot be searched for together: {cause}. Shorten repeats such as {{1000}}."
            yield Problem(("rules",), text)


def _find_problem(key: str | int, pattern: str) -> str | None:
    """Return why a pattern cannot be used, or would not mean what it seems to."""
    import polars as pl  # its import takes longer than reading the whole configuration

    from ttf.raw.node_logs.rules import split_pattern, widen

    if problem := find_pattern_problem(pattern) or find_pattern_problem(widen(pattern)):
        return problem
    if key == "job_start" and "(?P<job>" not in pattern:
        return "it names no job; put (?P<job>...) around the job's id."
    if key == "multiline" and not re.search(r"\((?!\?)|\(\?P?<", pattern):
        return "it has no group; put ( ) around the text that lines of one message share."
    if "\n" in pattern and not re.search(r"\(\?[a-z]*x", pattern):
        return f"{show(pattern)} has a line end, which no line has; write it on one line."
    if any(token.startswith("[:") and not in_class for token, in_class in split_pattern(pattern)):
        return f"{show(pattern)} has [:name:] outside of brackets; write [[:name:]]."
    if key != "monitors" and pl.Series([""]).str.contains(pattern).item():
        return f"{show(pattern)} matches an empty message, so all of them; see to what is optional, and to an empty |."
    return None
