"""The published findings of config/claims.yaml, checked before any job runs."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from study.documents import Problem, load_document


def load_claims(path: str | Path, label: str | None = None) -> dict:
    """The document: sources by key, and the claims in order. Raises ConfigError, a line a problem."""
    return load_document(path, "claims.schema.yaml", label, _contradictions)


def _contradictions(document: dict) -> Iterator[Problem]:
    """Ids that stand more than once, and sources that nobody described."""
    times = Counter(claim["id"] for claim in document["claims"])
    for number, claim in enumerate(document["claims"]):
        if times[claim["id"]] > 1:
            yield Problem(("claims", number, "id"), f"stands {times[claim['id']]} times; each claim has its own.")
        if claim["source"] not in document["sources"]:
            sources = ", ".join(document["sources"])
            yield Problem(("claims", number, "source"), f"{claim['source']} is not under sources: {sources}.")
