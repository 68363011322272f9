"""The reasons of failures: the shipped file and one of a person's own, checked before the DAG is built."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from study.documents import Problem, load_extended, mean
from study.messages import one_line, show

# What a rule looks at.
EVIDENCE = ("text", "word", "state", "exit_code")


def taxonomy_of(shipped: Path, own: str = "") -> dict:
    """The taxonomy in force: `tail_kib`, `reasons` (name -> domain, category, deterministic) and `rules`, in order.

    `own` is the path of a person's own file, nothing for none. It comes before the shipped one: its rules are tried
    first, its reasons and its tail_kib take the place of those shipped; with `extends: false` it stands alone.
    Raises ConfigError, with all that is wrong and in which line.
    """
    documents = load_extended(shipped, own, _contradictions)
    reasons = {name: about for document in reversed(documents) for name, about in document.get("reasons", {}).items()}
    lengths = [document["tail_kib"] for document in documents if "tail_kib" in document]
    return {
        "tail_kib": next(iter(lengths), 64),
        "reasons": {
            name: {
                "domain": about["domain"],
                "category": about.get("category", []),
                "deterministic": about["deterministic"],
            }
            for name, about in reasons.items()
        },
        "rules": [
            {"reason": rule["reason"]} | {key: rule.get(key, []) for key in EVIDENCE}
            for document in documents
            for rule in document.get("rules", [])
        ],
    }


def tells_reasons(entry: dict, format: Mapping, taxonomy: dict) -> bool:
    """Whether a trace without the tails of logs can tell the reason of a failure: known before any of it is read.

    That is its format (`reasons`); in the format table, a mapped reason or exit code, or a status of a failure that is
    a state of some rule.
    """
    if {"reason", "exit_code"} & entry.get("mapping", {}).keys():
        return True
    states = {_folded(word) for rule in taxonomy["rules"] for word in rule["state"]}
    words = entry.get("outcomes", {}).get("failure", [])
    return format.get("reasons", False) or any(_folded(word) in states for word in words)


def _folded(word: str) -> str:
    """A word as it is compared: see `ttf.analyses.causes.classify_failures.reason_rules.folded`."""
    return re.sub(r"[\s_-]+", " ", word.strip().lower())


def _contradictions(document: dict, base: dict | None) -> Iterator[Problem]:
    """Rules that lead nowhere, patterns that cannot be searched for, and reasons without a rule."""
    known, own = (base or {}).get("reasons", {}), document.get("reasons", {})
    rules = document.get("rules", [])
    for number, rule in enumerate(rules):
        if (name := rule["reason"]) not in (names := {**known, **own}):
            text = f"{show(name)} is not among the reasons{mean(name, names)} Describe it there."
            yield Problem(("rules", number, "reason"), text)
        # A test searches for those that are shipped.
        for index, pattern in enumerate(rule.get("text", []) if base is not None else ()):
            if text := pattern_problem(pattern):
                yield Problem(("rules", number, "text", index), text)
    for name in own.keys() - known.keys() - {rule["reason"] for rule in rules}:
        yield Problem(("reasons", name), "no rule leads to it; add one, or leave the reason out.")


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern cannot be searched for in time proportional to the text, in words; None for one that can.

    The engine of Polars, which will search, is asked: it has no look-around and no back-references, which is why no
    text can make it slow, and it refuses a pattern that compiles to more than 10 MB.
    """
    import polars as pl  # takes longer to import than all the rest of the configuration to read

    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.ComputeError as error:
        said = str(error).partition("This error occurred")[0]
        why = one_line(said.rpartition("error:")[2]).rstrip(".")
        return f"{show(pattern)} cannot be searched for: {why}."
    return None
