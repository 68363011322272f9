"""What changed between two versions of a raw table schema, in plain words."""

from collections.abc import Iterator

from ttf.report.words import plural

# Key of a column -> what it means when it is not written.
_PLAIN = {
    "as": None,
    "also": [],
    "type": None,
    "required": False,
    "optional": False,
    "keep": True,
    "values": [],
    "blank": [],
    "formats": [],
    "zone": "UTC",
    "scale": 1,
    "minimum": None,
    "maximum": None,
    "zero_is_blank": False,
}
# Key -> (what it says when it becomes true, when it becomes false).
_SWITCHES = {
    "required": ("must now have a value", "may now be blank"),
    "optional": ("may now be missing from the header", "must now stand in the header"),
    "keep": ("is now stored", "is no longer stored"),
    "zero_is_blank": ("0 now means no value", "0 is now a value"),
}
_LISTS = {
    "values": ("allowed", "word", "any word"),
    "blank": ("read as blank", "word", "no word"),
    "also": ("known as another name of it", "name", "no other name"),
}
_TABLE_SWITCHES = {
    "header": ("files now have a header row", "files no longer have a header row"),
    "quoted": ("fields may now stand in double quotes", "fields no longer stand in double quotes"),
}


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
        yield from (f"{table}{sentence}" for sentence in _table(old, new, before[table], after[table]))
    yield from (f"{table}: table removed" for table in before if table not in after)


def _table(old_document: dict, new_document: dict, old: dict, new: dict) -> Iterator[str]:
    """What changed in one table; each begins with `.column: ` or `: `."""
    header = [
        table.get("header", document.get("header", True))
        for document, table in ((old_document, old), (new_document, new))
    ]
    for key, (now, no_longer) in _TABLE_SWITCHES.items():
        before, after = header if key == "header" else (old.get(key, False), new.get(key, False))
        if before != after:
            yield f": {now if after else no_longer}"
    if old.get("delimiter", ",") != new.get("delimiter", ","):
        yield f": the delimiter {old.get('delimiter', ',')!r} becomes {new.get('delimiter', ',')!r}"
    yield from _lists_of_table(old, new)
    before = {column["name"]: column for column in old["columns"]}
    after = {column["name"]: column for column in new["columns"]}
    for name, column in after.items():
        if name not in before:
            yield f".{name}: new column ({column['type']}, stored as {column.get('as', name)})"
            continue
        yield from (f".{name}: {sentence}" for sentence in _column(before[name], column))
    yield from (f".{name}: column removed" for name in before if name not in after)
    shared = [name for name in before if name in after]
    if not header[1] and shared != [name for name in after if name in before]:
        yield f": the columns stand in another order: {', '.join(after)}"


def _lists_of_table(old: dict, new: dict) -> Iterator[str]:
    for key, words in (("key", "rows are told apart by"), ("order", "times must follow each other as")):
        before, after = old.get(key, []), new.get(key, [])
        if before != after:
            yield f": {words} {', '.join(after) or 'nothing'} (before: {', '.join(before) or 'nothing'})"
    before, after = old.get("belongs_to"), new.get("belongs_to")
    if before != after:
        yield f": rows belong to {_owner(after)} (before: {_owner(before)})"


def _owner(owner: dict | None) -> str:
    return f"the table {owner['table']} by {', '.join(owner['by'])}" if owner else "no other table"


def _column(old: dict, new: dict) -> Iterator[str]:
    def both(key: str) -> tuple:
        plain = old["name"] if key == "as" else _PLAIN[key]
        return old.get(key, plain), new.get(key, plain)

    for key, words in (
        ("type", "the type {} becomes {}"),
        ("as", "stored as {} becomes stored as {}"),
        ("scale", "the scale {} becomes {}"),
        ("zone", "the time zone {} becomes {}"),
    ):
        before, after = both(key)
        if before != after:
            yield words.format(before, after)
    for key, (now, no_longer) in _SWITCHES.items():
        before, after = both(key)
        if before != after:
            yield now if after else no_longer
    for key in ("minimum", "maximum"):
        before, after = both(key)
        if before != after:
            yield _limit(key, before, after)
    for key, (done, noun, nothing) in _LISTS.items():
        before, after = both(key)
        yield from _list(key, before, after, done, noun, nothing)
    before, after = both("formats")
    if before != after:
        yield f"times are written as {', '.join(after) or 'nothing'} (before: {', '.join(before) or 'nothing'})"


def _limit(key: str, before: int | None, after: int | None) -> str:
    if before is None:
        return f"new {key} {after:,}"
    if after is None:
        return f"the {key} {before:,} is dropped: the one of its type holds"
    return f"the {key} {'rises' if after > before else 'falls'} from {before:,} to {after:,}"


def _list(key: str, before: list, after: list, done: str, noun: str, nothing: str) -> Iterator[str]:
    if after and not before and key == "values":
        words = ", ".join(map(str, after))
        yield f"only the {'words' if len(after) > 1 else 'word'} {words} {_is(after)} allowed (before: any word)"
        return
    added = [word for word in after if word not in before]
    gone = [word for word in before if word not in after]
    if before and not after:
        yield f"{nothing} is {done} (before: {', '.join(map(str, before))})"
        return
    for words, now in ((added, f"now {done}"), (gone, f"no longer {done}")):
        if words:
            yield f"the {noun}{'s' if len(words) > 1 else ''} {', '.join(map(str, words))} {_is(words)} {now}"


def _is(words: list) -> str:
    return "are" if len(words) > 1 else "is"
