"""The reasons of failures: the shipped file and the user's own, checked before the DAG is built."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ttf.study.configuration.documents import Problem, load_extended, suggest_match
from ttf.study.configuration.messages import join_lines, show

# The fields that a rule compares.
EVIDENCE = ("text", "word", "state", "exit_code")


def load_taxonomy(shipped: Path, own_path: str = "") -> dict:
    """Return the taxonomy: `tail_kib`, `reasons` (name -> domain, category, deterministic) and `rules`, in order.

    own_path: the user's file, empty for none. Its rules come before the shipped rules; its reasons and its tail_kib
    replace shipped ones; with `extends: false` it stands alone. Raises ConfigError with all problems and their lines.
    """
    documents = load_extended(shipped, own_path, _find_contradictions)
    return {
        "tail_kib": next((document["tail_kib"] for document in documents if "tail_kib" in document), 64),
        "reasons": {
            name: {key: options.get(key, []) for key in ("domain", "category", "deterministic")}
            for document in reversed(documents)
            for name, options in document.get("reasons", {}).items()
        },
        "rules": [
            {"reason": rule["reason"]} | {key: rule.get(key, []) for key in EVIDENCE}
            for document in documents
            for rule in document.get("rules", [])
        ],
    }


def has_reasons(entry: dict, format: Mapping, taxonomy: dict) -> bool:
    """Return whether a trace without tails of logs can tell failure reasons, known before reading.

    It can by its format (`reasons`), by a mapped reason or exit code, or by a failure status that is a rule's state.
    """
    if {"reason", "exit_code"} & entry.get("mapping", {}).keys():
        return True
    states = {_fold_word(word) for rule in taxonomy["rules"] for word in rule["state"]}
    words = entry.get("outcomes", {}).get("failure", [])
    return format.get("reasons", False) or any(_fold_word(word) in states for word in words)


def _fold_word(word: str) -> str:
    """Return a word as it is compared: see `ttf.analyses.causes.classify_failures.reason_rules.fold_words`."""
    return re.sub(r"[\s_-]+", " ", word.strip().lower())


def _find_contradictions(document: dict, base: dict | None) -> Iterator[Problem]:
    """Yield rules without a reason, invalid patterns, and reasons without a rule."""
    base_reasons, own_reasons = (base or {}).get("reasons", {}), document.get("reasons", {})
    rules = document.get("rules", [])
    for number, rule in enumerate(rules):
        if (name := rule["reason"]) not in (names := {**base_reasons, **own_reasons}):
            text = f"{show(name)} is not one of the reasons{suggest_match(name, names)} Describe it there."
            yield Problem(("rules", number, "reason"), text)
        # A test covers the shipped patterns.
        for index, pattern in enumerate(rule.get("text", []) if base is not None else ()):
            if problem := find_pattern_problem(pattern):
                yield Problem(("rules", number, "text", index), problem)
    for name in own_reasons.keys() - base_reasons.keys() - {rule["reason"] for rule in rules}:
        yield Problem(("reasons", name), "no rule leads to it; add one, or remove the reason.")


def find_pattern_problem(pattern: str) -> str | None:
    """Return why a pattern is invalid; None if valid."""
    cause = find_search_error(pattern)
    return f"{show(pattern)} cannot be searched for: {cause}." if cause else None


def find_search_error(pattern: str) -> str | None:
    """Return the cause if a pattern cannot be searched for.

    Polars, which will search, decides: its engine has neither look-around nor back-references, so search time is
    proportional to the text, and it refuses a pattern that compiles to more than 10 MB.
    """
    import polars as pl  # its import takes longer than reading the whole configuration

    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.ComputeError as error:
        message = str(error).partition("This error occurred")[0]
        return join_lines(message.rpartition("error:")[2]).rstrip(".")
    return None
