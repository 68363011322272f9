"""The published findings of config/claims.yaml, checked before any job runs."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jsonschema import Draft202012Validator

from study.config import SCHEMAS, ConfigError, load_yaml

MOST_PROBLEMS = 8


def load_claims(path: str | Path, label: str | None = None) -> dict:
    """The document: sources by key, and the claims in order. Raises ConfigError, a line a problem."""
    label = str(path) if label is None else label
    document = load_yaml(path, label)
    problems = list(_problems(document))
    if problems:
        raise ConfigError("\n".join(f"{label}: {problem}" for problem in problems[:MOST_PROBLEMS]))
    return document


def _problems(document: dict) -> Iterator[str]:
    validator = Draft202012Validator(load_yaml(SCHEMAS / "claims.schema.yaml"))
    errors = sorted(validator.iter_errors(document), key=lambda error: [str(part) for part in error.absolute_path])
    for error in errors:
        place = _place(document, list(error.absolute_path))
        if error.validator == "oneOf":
            yield f"{place}: needs quantity, tolerance and why, or missing: one of the two."
        elif error.validator == "additionalProperties":
            known = ", ".join(error.schema.get("properties", {}))
            unknown = [key for key in error.instance if key not in error.schema.get("properties", {})]
            yield f"{place}: there is no such key: {', '.join(unknown)}. Allowed here: {known}."
        elif error.validator == "required":
            absent = [key for key in error.validator_value if key not in error.instance]
            yield f"{place}: {', '.join(absent)} is missing."
        else:
            yield f"{place}: {error.message.splitlines()[0][:200]}."
    if errors:
        return
    for name, times in Counter(claim["id"] for claim in document["claims"]).items():
        if times > 1:
            yield f"claims.{name}: the id stands {times} times; each claim has its own."
    sources = document["sources"]
    for claim in document["claims"]:
        if claim["source"] not in sources:
            yield f"claims.{claim['id']}.source: {claim['source']} is not under sources: {', '.join(sources)}."


def _place(document: dict, path: list) -> str:
    """The key path of a problem, a claim by its id where it has one."""
    if len(path) > 1 and path[0] == "claims":
        claim = document["claims"][path[1]]
        name = claim.get("id") if isinstance(claim, dict) else None
        path = ["claims", name if isinstance(name, str) else f"[{path[1]}]", *path[2:]]
    return ".".join(str(part) for part in path) or "the file"
