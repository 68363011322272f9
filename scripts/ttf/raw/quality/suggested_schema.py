"""The format's schema with the suggested changes written into it, each under a comment that says why.

The text is changed where the changes are and nowhere else, so that a person sees them with any diff.
"""

import copy
from collections.abc import Sequence

import yaml

from ttf.engine.words import plural
from ttf.raw.quality.suggestions import Suggestion
from ttf.raw.raw_tables import printable

# Begins every comment that is written here: those of an earlier suggestion, since adopted, are taken out again.
COMMENT = "#| "
MARK = "Suggested"


def suggested_schema(text: str, trace: str, suggestions: Sequence[Suggestion], from_entry: bool = False) -> str:
    """The YAML text of the suggested schema; where nothing is suggested, the text as it is under a note that says so.

    text: the schema in force; from_entry: it follows from the trace's registry entry (format table), which is then the
    place to adopt a change. The version is raised by 1 where something changes, and only then.
    """
    text = "".join(line for line in text.splitlines(keepends=True) if not line.lstrip().startswith(COMMENT))
    changes = [suggestion for suggestion in suggestions if suggestion.is_change]
    if not changes:
        note = f"The schema in force for the trace {trace}, unchanged: no quarantined row suggests a change."
        return f"{COMMENT}{note}\n{text}"
    head = _head(trace, changes, from_entry)
    expected = _changed(yaml.safe_load(text), changes)
    written = head + _edited(text, changes, expected)
    try:
        agrees = yaml.safe_load(written) == expected
    except yaml.YAMLError:
        agrees = False
    # A schema of one's own may be laid out in ways that cannot be edited line by line: then it is written anew.
    return written if agrees else _written_anew(head, changes, expected)


def why(suggestion: Suggestion) -> str:
    """The comment over a change: what, how many rows, where the first of them stand."""
    line = "line" if "," not in suggestion.first_lines else "lines"
    return _comment_line(
        f"{MARK}: {suggestion.words}; {plural(suggestion.rows, 'row')}, {line} {suggestion.first_lines}."
    )


def _comment_line(text: str) -> str:
    """One line of a YAML comment: a trace's words cannot end it."""
    return COMMENT + "".join(character if character.isprintable() else printable(character) for character in text)


def _head(trace: str, changes: Sequence[Suggestion], from_entry: bool) -> str:
    count = plural(len(changes), "change")
    lines = [
        f"{count} suggested by the quarantined rows of the trace {trace}; none is in force.",
        f"Look at each place marked `{MARK}`, and at its rows in quarantine.parquet.",
    ]
    if from_entry:
        lines += [
            "This schema follows from the registry. To adopt what you keep, change the trace's entry there: a status",
            "word belongs under outcomes, a word for no value under blank.",
        ]
    else:
        lines += [
            "To adopt what you keep, copy this file out of results/ and name it in your configuration:",
            f"  registry: {{{trace}: {{schema: path/to/the/copy.yaml}}}}",
            "A word allowed for a job's status that the format does not know gives the outcome unknown: neither a",
            "success nor a failure.",
        ]
    return "".join(f"{COMMENT}{line}\n" for line in lines)


def _changed(document: dict, changes: Sequence[Suggestion]) -> dict:
    # YAML's aliases make one object stand in two places; a copy by value keeps a change to the one meant.
    document = _by_value(document)
    document["version"] += 1
    for change in changes:
        table = document["tables"][change.table]
        table.update(copy.deepcopy(change.table_keys))
        if change.column_keys:
            _column_of(table, change.column).update(copy.deepcopy(change.column_keys))
    return document


def _column_of(table: dict, name: str | None) -> dict:
    return next(column for column in table["columns"] if name in (column["name"], *column.get("also", ())))


def _by_value(value):
    if isinstance(value, dict):
        return {key: _by_value(item) for key, item in value.items()}
    return [_by_value(item) for item in value] if isinstance(value, list) else value


def _edited(text: str, changes: Sequence[Suggestion], expected: dict) -> str:
    """The text with the changed columns written over, new keys at the head of tables, and a comment line above each."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    version = _value(root, "version")
    # From and to which character -> what stands there instead.
    edits = {(version.start_mark.index, version.end_mark.index): str(expected["version"])}
    for change in changes:
        table, wanted = _value(_value(root, "tables"), change.table), expected["tables"][change.table]
        node = table.value[0][0]
        end, instead = node.start_mark.index, ""
        if change.column_keys:
            column = _column_of(wanted, change.column)
            node = _value(table, "columns").value[wanted["columns"].index(column)]
            end, instead = _end(node), _flow(column)
        elif change.table_keys:
            between = ", " if table.flow_style else "\n" + " " * node.start_mark.column
            instead = "".join(f"{key}: {_flow(value)}{between}" for key, value in change.table_keys.items())
        edits[node.start_mark.index, end] = instead
        at = text.rfind("\n", 0, node.start_mark.index) + 1
        line = text[at : node.start_mark.index]
        edits[at, at] = f"{edits.get((at, at), '')}{line[: len(line) - len(line.lstrip())]}{why(change)}\n"
    # From the end, so that the places before stay where they are.
    for (start, end), instead in sorted(edits.items(), reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def _value(mapping: yaml.MappingNode, key: str) -> yaml.Node:
    return next(value for name, value in mapping.value if name.value == key)


def _end(node: yaml.Node) -> int:
    """Where a node's text ends; a block's own mark lies beyond the comments behind it."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style:
        return node.end_mark.index
    return _end(node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1])


def _flow(value: object) -> str:
    """A value on one line of YAML."""
    dumped = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), sort_keys=False, allow_unicode=True)
    return dumped.removesuffix("\n").removesuffix("\n...")


def _written_anew(head: str, changes: Sequence[Suggestion], expected: dict) -> str:
    comments = "".join(
        f"{why(change)} (table {change.table}{f', column {change.column}' if change.column else ''})\n"
        for change in changes
    )
    return head + comments + schema_text(expected)


def schema_text(document: dict) -> str:
    """A schema document as YAML, without anchors where one list stands in two places."""
    return yaml.safe_dump(_by_value(document), default_flow_style=None, width=110, sort_keys=False, allow_unicode=True)
