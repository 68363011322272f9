"""What changed between two versions of a raw table schema, in plain words."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ttf.words import plural

Say = Callable[[Any, Any], Iterable[str]]


def schema_diff(old: dict, new: dict) -> list[str]:
    """Sentences, in the order of the new schema; none where the two say the same.

    old, new: schema documents as read from YAML (workflow/schemas/table.schema.yaml). A key that is written with the
    value it has anyway, or another order of the columns of a table with a header, changes nothing.
    """
    return list(_document(old, new))


def _document(old: dict, new: dict) -> Iterator[str]:
    if old.get("version") != new.get("version"):
        yield f"version {old.get('version')} becomes {new.get('version')}"
    before, after = old["tables"], new["tables"]
    for table in after:
        if table not in before:
            yield f"{table}: new table of {plural(len(after[table]['columns']), 'column')}"
            continue
        # A document says whether its files have a header, and a table may say otherwise.
        both = [{"header": document.get("header", True)} | document["tables"][table] for document in (old, new)]
        yield from (f"{table}{sentence}" for sentence in _table(*both))
    yield from (f"{table}: table removed" for table in before if table not in after)


def _table(old: dict, new: dict) -> Iterator[str]:
    """What changed in one table; each begins with `.column: ` or `: `."""
    yield from (f": {sentence}" for sentence in _changes(old, new, _OF_TABLE))
    before, after = ({column["name"]: column for column in table["columns"]} for table in (old, new))
    for name, column in after.items():
        if name not in before:
            yield f".{name}: new column ({column['type']}, stored as {column.get('as', name)})"
            continue
        both = [{"as": name} | columns[name] for columns in (before, after)]
        yield from (f".{name}: {sentence}" for sentence in _changes(*both, _OF_COLUMN))
    yield from (f".{name}: column removed" for name in before if name not in after)
    shared = [name for name in before if name in after]
    if not new["header"] and shared != [name for name in after if name in before]:
        yield f": the columns stand in another order: {', '.join(after)}"


def _changes(old: dict, new: dict, keys: Mapping[str, tuple[Any, Say]]) -> Iterator[str]:
    for key, (plain, say) in keys.items():
        before, after = old.get(key, plain), new.get(key, plain)
        if before != after:
            yield from say(before, after)


def _becomes(words: str) -> Say:
    return lambda before, after: [words.format(before, after)]


def _switch(now: str, no_longer: str) -> Say:
    return lambda _, after: [now if after else no_longer]


def _limit(name: str) -> Say:
    def say(before: int | None, after: int | None) -> list[str]:
        if before is None:
            return [f"new {name} {after:,}"]
        if after is None:
            return [f"the {name} {before:,} is dropped: the one of its type holds"]
        return [f"the {name} {'rises' if after > before else 'falls'} from {before:,} to {after:,}"]

    return say


def _as_a_whole(words: str) -> Say:
    """Of a list that is replaced."""
    return lambda before, after: [f"{words} {', '.join(after) or 'nothing'} (before: {', '.join(before) or 'nothing'})"]


def _one_by_one(done: str, noun: str, nothing: str) -> Say:
    """Of a list to which words are added and from which they are taken."""

    def say(before: list, after: list) -> Iterator[str]:
        if before and not after:
            yield f"{nothing} is {done} (before: {', '.join(map(str, before))})"
            return
        added, gone = ([word for word in one if word not in other] for one, other in ((after, before), (before, after)))
        for words, now in ((added, f"now {done}"), (gone, f"no longer {done}")):
            if words:
                yield f"the {_listed(noun, words)} {now}"

    return say


def _values(before: list, after: list) -> Iterable[str]:
    if after and not before:
        return [f"only the {_listed('word', after)} allowed (before: any word)"]
    return _one_by_one("allowed", "word", "any word")(before, after)


def _listed(noun: str, words: list) -> str:
    more = len(words) > 1
    return f"{noun}{'s' if more else ''} {', '.join(map(str, words))} {'are' if more else 'is'}"


def _owner(owner: dict | None) -> str:
    return f"the table {owner['table']} by {', '.join(owner['by'])}" if owner else "no other table"


# Key -> what it means when it is not written, and what is said of a change.
_OF_TABLE: dict[str, tuple[Any, Say]] = {
    "header": (True, _switch("files now have a header row", "files no longer have a header row")),
    "quoted": (False, _switch("fields may now stand in double quotes", "fields no longer stand in double quotes")),
    "delimiter": (",", _becomes("the delimiter {!r} becomes {!r}")),
    "key": ([], _as_a_whole("rows are told apart by")),
    "order": ([], _as_a_whole("times must follow each other as")),
    "belongs_to": (None, lambda before, after: [f"rows belong to {_owner(after)} (before: {_owner(before)})"]),
}
_OF_COLUMN: dict[str, tuple[Any, Say]] = {
    "type": (None, _becomes("the type {} becomes {}")),
    "as": (None, _becomes("stored as {} becomes stored as {}")),
    "pattern": (None, _becomes("the pattern {} becomes {}")),
    "kilo": (None, _becomes("K for {} becomes K for {}")),
    "scale": (1, _becomes("the scale {} becomes {}")),
    "zone": ("UTC", _becomes("the time zone {} becomes {}")),
    "required": (False, _switch("must now have a value", "may now be blank")),
    "optional": (False, _switch("may now be missing from the header", "must now stand in the header")),
    "keep": (True, _switch("is now stored", "is no longer stored")),
    "zero_is_blank": (False, _switch("0 now means no value", "0 is now a value")),
    "minimum": (None, _limit("minimum")),
    "maximum": (None, _limit("maximum")),
    "values": ([], _values),
    "blank": ([], _one_by_one("read as blank", "word", "no word")),
    "also": ([], _one_by_one("known as another name of it", "name", "no other name")),
    "formats": ([], _as_a_whole("times are written as")),
}
