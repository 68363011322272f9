"""Elements of a JSON-LD graph: entities with an id, a type and facts, and references to them."""

from collections.abc import Sequence


def entity(entity_id: str, kind: str | list[str], **facts: object) -> dict:
    """Return an entity without the facts that are None."""
    return {"@id": entity_id, "@type": kind} | {name: fact for name, fact in facts.items() if fact is not None}


def ids(entities: Sequence[dict]) -> list[dict] | dict:
    """Return references to the entities; see `refer`."""
    return refer(*(item["@id"] for item in entities))


def refer(*entity_ids: str) -> list[dict] | dict:
    """Return references to these ids; a single one without a list, as the specification recommends."""
    references = [{"@id": entity_id} for entity_id in entity_ids]
    return references[0] if len(references) == 1 else references
