"""The declarations of formats, for their own code: words, zones, causes and strata stand there alone."""

from functools import cache
from pathlib import Path

import yaml


@cache
def declared(name: str) -> dict:
    """The declaration of a format that has code, without the schema of its raw tables."""
    text = (Path(__file__).parent / name / "format.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text.partition("\nschema:\n")[0])


def outcome_by_word(outcomes: dict[str, list[str]]) -> dict[str, str]:
    """Word of a status -> outcome."""
    return {word: outcome for outcome, words in outcomes.items() for word in words}


def outcomes_of(name: str) -> dict[str, str]:
    """Word of a status -> outcome, of a format that has code."""
    return outcome_by_word(declared(name)["outcomes"])
