"""The word that a misspelt one probably means."""

import difflib
import itertools
from collections.abc import Iterable


def closest_match(word: str, allowed: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the allowed word closest to a misspelt one; case and - for _ do not count. cutoff: of difflib's ratio."""
    # Comparing very many or very long words takes more time than it helps.
    originals = {name.casefold().replace("-", "_"): name for name in itertools.islice(allowed, 2000) if len(name) < 100}
    if len(word) > 100:
        return None
    # In a word of two letters, one wrong letter is half of the word.
    cutoff = cutoff if len(word) > 2 else cutoff - 0.1
    matches = difflib.get_close_matches(word.casefold().replace("-", "_"), originals, n=1, cutoff=cutoff)
    return originals[matches[0]] if matches else None
