"""The declarations of formats, for their own code: words, zones, causes and strata stand there alone; and units."""

from functools import cache
from pathlib import Path

import yaml

# The units that a column of requests or of run times may count in.
# Key of a mapping -> unit -> how many of our small unit it is; the first unit is the registry's default.
UNITS = {
    "runtime": {"s": 1, "min": 60, "h": 3600},
    "duration": {"s": 1, "min": 60, "h": 3600},
    "gpus": {"gpu": 1000, "percent": 10, "milli": 1},
    "cpus": {"core": 1000, "percent": 10, "milli": 1},
    "memory": {"MiB": 1, "GiB": 1024, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "B": 1},
}
# Of which a MiB is no whole number: what is in them is counted in bytes.
UNITS_IN_BYTES = ("MB", "GB", "KiB", "B")
BYTES_OF_A_MIB = 2**20


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
