"""Load the declarations of formats for their code, and define the units.

Words, zones, causes and strata are defined in the declarations only.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

# text: the cells name their own units, as in 2.1min; such a column is stored in seconds.
_DURATION_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "ms": 1e-3, "us": 1e-6, "text": 1}
# Units of a column of requests or run times: key of a mapping -> unit -> its size in our small unit. The first unit is
# the default of the registry.
UNITS: dict[str, dict[str, int | float]] = {
    "runtime": _DURATION_UNITS,
    "duration": _DURATION_UNITS,
    "gpus": {"gpu": 1000, "percent": 10, "milli": 1},
    "cpus": {"core": 1000, "percent": 10, "milli": 1},
    "memory": {"MiB": 1, "GiB": 1024, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "B": 1},
    "memory_peak": {"MiB": 1, "GiB": 1024},
}
# Units that do not divide a MiB; their values are counted in bytes.
UNITS_IN_BYTES = ("MB", "GB", "KiB", "B")
BYTES_PER_MIB = 2**20


@cache
def load_declaration(name: str) -> dict:
    """Return the declaration of a format with code, without the schema of its raw tables."""
    text = (Path(__file__).parent / name / "format.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text.partition("\nschema:\n")[0])


def outcome_by_word(outcomes: Mapping[str, list[str]]) -> dict[str, str]:
    """Invert outcome -> status words to status word -> outcome."""
    return {word: outcome for outcome, words in outcomes.items() for word in words}


def load_outcomes(name: str) -> dict[str, str]:
    """Return status word -> outcome for a format with code."""
    return outcome_by_word(load_declaration(name)["outcomes"])


def resolve_outcomes(name: str, meaning: Mapping) -> dict[str, str]:
    """Return status word -> outcome of a trace: as its registry entry says, else as its format declares."""
    return load_outcomes(name) | outcome_by_word(meaning.get("outcomes", {}))
