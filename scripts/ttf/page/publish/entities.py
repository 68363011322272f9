"""What a graph of JSON-LD is made of: entities with an id, a type and facts, and references to them."""

from collections.abc import Sequence


def entity(at: str, kind: str | list[str], **facts: object) -> dict:
    """An entity of the graph, without the facts that are None."""
    return {"@id": at, "@type": kind} | {name: fact for name, fact in facts.items() if fact is not None}


def ids(entities: Sequence[dict]) -> list[dict] | dict:
    """References to the entities; see `refer`."""
    return refer(*(each["@id"] for each in entities))


def refer(*at: str) -> list[dict] | dict:
    """References to what has these ids; one stands by itself, as the specification would have it."""
    found = [{"@id": each} for each in at]
    return found[0] if len(found) == 1 else found
