"""The rules of outage causes: the shipped file and one of a person's own, checked before the DAG is built."""

from pathlib import Path

from study.documents import load_document, load_schema


def outage_rules_of(shipped: Path, own: str = "") -> list[dict]:
    """The rules in force, in order: those of a person's own file (a path, nothing for none) before the shipped ones.

    Raises ConfigError, with all that is wrong and in which line.
    """
    schema = load_schema("outage_causes.schema.yaml")
    rules = load_document(shipped, schema, f"config/{shipped.name}")["rules"]
    if not own:
        return rules
    first = load_document(own, schema, f"outage_causes: {own}")
    return first["rules"] if first.get("extends") is False else [*first["rules"], *rules]
