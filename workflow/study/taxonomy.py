"""The reasons of failures: the shipped file and one of a person's own, checked before the DAG is built."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from study.documents import Problem, load_document, load_schema, mean
from study.given import given_file
from study.messages import ConfigError, one_line, show
from study.yaml_files import load_yaml

# What a rule looks at.
EVIDENCE = ("text", "word", "state", "exit_code")
# Searching takes time in proportion to the text and to the pattern with its counted repetitions written out, in which
# (a{9}b){9} is 90 letters: about a second for 64 KiB at this length, were the text made for it.
LONGEST_WRITTEN_OUT = 1000
_TOKEN = re.compile(r"\\.|\((?:\?[\w-]*:?)?|\[(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|.", re.DOTALL)


def taxonomy_of(shipped: Path, own: str = "") -> dict:
    """The taxonomy in force: `tail_kib`, `reasons` (name -> domain, category, deterministic) and `rules`, in order.

    `own` is the path of a person's own file, nothing for none. It comes before the shipped one: its rules are tried
    first, its reasons and its tail_kib take the place of those shipped; with `extends: false` it stands alone.
    Raises ConfigError, with all that is wrong and in which line.
    """
    schema = load_schema("taxonomy.schema.yaml")
    base = load_document(shipped, schema, f"config/{shipped.name}", partial(_contradictions, known={}))
    if not own:
        return _complete(base)
    label = f"taxonomy: {own}"
    # What the file says of itself decides which reasons its rules may lead to.
    alone = load_yaml(own, label).get("extends") is False
    below = {"reasons": {}, "rules": []} if alone else base

    def contradictions(document: dict) -> Iterator[Problem]:
        yield from _contradictions(document, below["reasons"])
        yield from _unsearchable(document)

    first = load_document(own, schema, label, contradictions)
    return _complete(
        {
            "tail_kib": first.get("tail_kib", base["tail_kib"]),
            "reasons": below["reasons"] | first.get("reasons", {}),
            "rules": [*first.get("rules", []), *below["rules"]],
        }
    )


def tells_reasons(trace: str, entry: dict, format: Mapping, taxonomy: dict) -> bool:
    """Whether anything of a trace can tell the reason of a failure: known before any of it is read.

    That is its format (`reasons`); in the format table, a mapped reason or exit code, or a status of a
    failure that is a state of some rule; in any format with jobs, the tails of logs.
    Raises ConfigError for tails that are not there, and for a trace without jobs that has some.
    """
    if "log_tails" in entry:
        where = f"registry.{trace}.log_tails"
        if format["gives"] != "jobs":
            raise ConfigError(f"{where}: logs are those of jobs, and the format {entry['format']} has none.")
        given_file(entry["log_tails"], where)
        return True
    if {"reason", "exit_code"} & entry.get("mapping", {}).keys():
        return True
    states = {_folded(word) for rule in taxonomy["rules"] for word in rule["state"]}
    words = entry.get("outcomes", {}).get("failure", [])
    return format.get("reasons", False) or any(_folded(word) in states for word in words)


def _folded(word: str) -> str:
    """A word as it is compared: see `ttf.analyses.classify_failures.rules.folded`."""
    return re.sub(r"[\s_-]+", " ", word.strip().lower())


def _complete(taxonomy: dict) -> dict:
    """All keys that a rule and a reason may have, in a fixed order."""
    return {
        "tail_kib": taxonomy["tail_kib"],
        "reasons": {
            name: {key: about.get(key, []) for key in ("domain", "category")}
            | {"deterministic": about["deterministic"]}
            for name, about in taxonomy["reasons"].items()
        },
        "rules": [
            {"reason": rule["reason"]} | {key: rule.get(key, []) for key in EVIDENCE} for rule in taxonomy["rules"]
        ],
    }


def _contradictions(document: dict, known: Mapping) -> Iterator[Problem]:
    """Rules that lead nowhere, and reasons without a rule."""
    reasons = {**known, **document.get("reasons", {})}
    for number, rule in enumerate(document.get("rules", [])):
        name = rule["reason"]
        if name not in reasons:
            yield Problem(
                ("rules", number, "reason"),
                f"{show(name)} is not among the reasons{mean(name, reasons)} Describe it there.",
            )
    used = {rule["reason"] for rule in document.get("rules", [])}
    for name in document.get("reasons", {}):
        if name not in used and name not in known:
            yield Problem(("reasons", name), "no rule leads to it; add one, or leave the reason out.")


def _unsearchable(document: dict) -> Iterator[Problem]:
    """The patterns that cannot be searched for."""
    for number, rule in enumerate(document.get("rules", [])):
        for place, pattern in enumerate(rule.get("text", [])):
            if text := pattern_problem(pattern):
                yield Problem(("rules", number, "text", place), text)


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern cannot be searched for in time proportional to the text, in words; None for one that can.

    The engine of Polars, which will search, is asked: it has no look-around and no back-references, which is why no
    text can make it slow, and it refuses a pattern that compiles to more than 10 MB.
    """
    import polars as pl  # takes longer to import than all the rest of the configuration to read

    if _written_out(pattern) > LONGEST_WRITTEN_OUT:
        return (
            f"{show(pattern)}: with its counted repetitions written out it is longer than {LONGEST_WRITTEN_OUT:,} "
            "characters; use * or + in place of large counts."
        )
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.ComputeError as error:
        said = str(error).partition("This error occurred")[0]
        why = one_line(said.rpartition("error:")[2]).rstrip(".")
        return f"{show(pattern)} cannot be searched for: {why}."
    return None


def _written_out(pattern: str) -> int:
    """About how many characters and classes a pattern has with its counted repetitions written out."""
    # A group within a group: what came before each, and its last part, which a repetition repeats.
    groups, length, last = [], 0, 0
    for token in _TOKEN.finditer(pattern):
        if token[1]:
            # Digits that fill a page are as good as many.
            times = max(int((token[2] or token[1])[:9]), 1)
            length, last = length + last * (times - 1), last * times
        elif token[0].startswith("("):
            groups.append(length)
            length = 0
        elif token[0] == ")" and groups:
            length, last = length + groups.pop(), length
        elif token[0] not in ")|*+?^$":
            length, last = length + 1, 1
    return length + sum(groups)
