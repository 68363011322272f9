"""Write the suggested changes into the text of a schema, each below a comment with the reason.

The rest of the text stays unchanged, so that any diff shows the changes.
"""

import copy
import json
from collections.abc import Sequence

import yaml

from ttf.engine.words import plural
from ttf.raw.quality.suggestions import Suggestion
from ttf.raw.raw_tables import escape_text

# Prefix of every comment that this module writes, so that it can remove comments of an earlier suggestion.
COMMENT = "#| "
MARK = "Suggested"


def suggested_schema(text: str, trace: str, suggestions: Sequence[Suggestion], from_entry: bool = False) -> str:
    """Return the YAML text of the suggested schema, or the unchanged text below a note if nothing is suggested.

    text: the schema in force. from_entry: it follows from the trace's registry entry (format table), where a change is
    then adopted. Any change raises the version by 1.
    """
    text = "".join(line for line in text.splitlines(keepends=True) if not line.lstrip().startswith(COMMENT))
    changes = [suggestion for suggestion in suggestions if suggestion.is_change]
    if not changes:
        note = f"The schema in force for the trace {trace}, unchanged: no quarantined row suggests a change."
        return f"{COMMENT}{note}\n{text}"
    header = _format_header(trace, changes, from_entry)
    new_document = _apply_changes(yaml.safe_load(text), changes)
    edited_text = header + _edit_text(text, changes, new_document)
    try:
        is_equal = yaml.safe_load(edited_text) == new_document
    except yaml.YAMLError:
        is_equal = False
    # Rewrite a user's schema whose layout cannot be edited line by line.
    return edited_text if is_equal else _compose_schema_text(header, changes, new_document)


def _format_comment(suggestion: Suggestion) -> str:
    line = "line" if "," not in suggestion.first_lines else "lines"
    return _comment_line(
        f"{MARK}: {suggestion.words}; {plural(suggestion.rows, 'row')}, {line} {suggestion.first_lines}."
    )


def _comment_line(text: str) -> str:
    """Return one line of a YAML comment, escaped so that words of a trace cannot end it."""
    return COMMENT + "".join(character if character.isprintable() else escape_text(character) for character in text)


def _format_header(trace: str, changes: Sequence[Suggestion], from_entry: bool) -> str:
    lines = [
        f"{plural(len(changes), 'change')} suggested by the quarantined rows of the trace {trace}; none is in force.",
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


def _apply_changes(document: dict, changes: Sequence[Suggestion]) -> dict:
    document = _copy_without_aliases(document)
    document["version"] += 1
    for change in changes:
        table = document["tables"][change.table]
        table.update(copy.deepcopy(change.table_keys))
        if change.column_keys:
            _find_column(table, change.column).update(copy.deepcopy(change.column_keys))
    return document


def _find_column(table: dict, name: str | None) -> dict:
    return next(column for column in table["columns"] if name in (column["name"], *column.get("also", ())))


def _copy_without_aliases(document: dict) -> dict:
    """Return a copy in which no object stands in two places, as a YAML alias makes it; a change concerns one place."""
    return json.loads(json.dumps(document))


def _edit_text(text: str, changes: Sequence[Suggestion], new_document: dict) -> str:
    """Return the YAML text with the new version, columns and keys of tables, and a comment line above each change."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    version = _get_node(root, "version")
    # (first character, character after the last) -> replacement.
    edits = {(version.start_mark.index, version.end_mark.index): str(new_document["version"])}
    for change in changes:
        table, new_table = _get_node(_get_node(root, "tables"), change.table), new_document["tables"][change.table]
        node = table.value[0][0]
        end, replacement = node.start_mark.index, ""
        if change.column_keys:
            column = _find_column(new_table, change.column)
            node = _get_node(table, "columns").value[new_table["columns"].index(column)]
            end, replacement = _end_index(node), _flow_yaml(column)
        elif change.table_keys:
            separator = ", " if table.flow_style else "\n" + " " * node.start_mark.column
            replacement = "".join(f"{key}: {_flow_yaml(value)}{separator}" for key, value in change.table_keys.items())
        edits[node.start_mark.index, end] = replacement
        begin = text.rfind("\n", 0, node.start_mark.index) + 1
        line = text[begin : node.start_mark.index]
        edits[begin, begin] = (
            f"{edits.get((begin, begin), '')}{line[: len(line) - len(line.lstrip())]}{_format_comment(change)}\n"
        )
    # From the end, so that earlier indices stay valid.
    for (start, end), replacement in sorted(edits.items(), reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _get_node(mapping: yaml.MappingNode, key: str) -> yaml.Node:
    return next(value for name, value in mapping.value if name.value == key)


def _end_index(node: yaml.Node) -> int:
    """Return the index after a node's text; the end mark of a block lies after the comments that follow it."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style:
        return node.end_mark.index
    return _end_index(node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1])


def _flow_yaml(value: object) -> str:
    dumped = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), sort_keys=False, allow_unicode=True)
    return dumped.removesuffix("\n").removesuffix("\n...")


def _compose_schema_text(header: str, changes: Sequence[Suggestion], new_document: dict) -> str:
    comments = "".join(
        f"{_format_comment(change)} (table {change.table}{f', column {change.column}' if change.column else ''})\n"
        for change in changes
    )
    return header + comments + schema_text(new_document)


def schema_text(document: dict) -> str:
    """Return a schema document as YAML, without anchors for a list that is used twice."""
    content = _copy_without_aliases(document)
    return yaml.safe_dump(content, default_flow_style=None, width=110, sort_keys=False, allow_unicode=True)
