"""The draft of an unknown file: the recipe or the mapping by which it can be read, or why it cannot."""

from pathlib import Path

from ttf.raw.node_logs.layouts import describe_unread_form
from ttf.study.configuration.messages import ConfigError
from ttf.study.recognition.column_terms import classify_word, find_time_key, list_formats, list_named
from ttf.study.recognition.draft import NO_OUTCOME, Draft, draft_mapping, join_names, list_run_times
from ttf.study.recognition.first_lines import read_first_bytes, show_name
from ttf.study.recognition.recipes import find_recipe
from ttf.study.recognition.refusals import PRINT_AGAIN, SACCT_NAMES, describe_missing_sacct, explain_unreadable
from ttf.study.recognition.table_sample import MOST_BYTES, Sample, is_json, read_sample, split_header, split_rows


def draft_file(path: Path) -> tuple[str, Draft]:
    """Return the draft of a file and its heading: by a recipe, or by its names and values.

    Raises ConfigError with the reason if there is none.
    """
    label = show_name(str(path))
    refusal = explain_unreadable(path)
    if refusal and not is_json(path):
        raise ConfigError(refusal)
    sample, form = read_sample(path), describe_unread_form(read_first_bytes(str(path)) or b"")
    if sample is None:
        raise ConfigError(refusal or f"{label}: {f'{form}.' if form else _explain_no_rows(path)}")
    if no_header := _explain_no_header(path, sample):
        raise ConfigError(f"{label}: {no_header}")
    if recipe := find_recipe(sample):
        file, entry, unlisted_states = recipe
        draft = Draft(entry)
        draft.ask_for_outcomes(unlisted_states)
        return f"the columns and states of {file}, which is used.", draft
    draft = draft_mapping(sample)
    if no_draft := _explain_no_draft(label, sample, draft):
        is_log = form and {"message", "msg"} & {name.lower() for name in sample.rows.columns}
        raise ConfigError(f"{label}: {f'{form}.' if is_log else no_draft}")
    if columns := draft.entry.get("records", {}).get("columns"):
        used = {name: columns[name] for name in draft.columns if columns[name] != name}
        draft.entry["records"] = draft.entry["records"] | {"columns": used}
    n_rows = f"{sample.rows.height:,} row{'s' if sample.rows.height > 1 else ''}"
    return f"no known format; drafted as a table of jobs from its header and {n_rows}:", draft


def _explain_no_rows(path: Path) -> str:
    """Return why a text has no rows of a table."""
    head = read_first_bytes(str(path), MOST_BYTES) or b""
    names, options = split_header(head)
    rows, lines, _ = split_rows(head, options)
    if len(names) < 2:
        field = show_name(names[0][:60])
        return f"line 1 is one field, {field!r}. Expected names of columns with a comma, semicolon, tab or | between."
    if not rows:
        return f"line 1 names {len(names)} columns, but no row follows."
    return (
        f"line {lines[0]} has {len(rows[0])} fields, but the header row {len(names)}, and no row has as many. A cell "
        "with the delimiter must be in double quotes."
    )


def _explain_no_header(path: Path, sample: Sample) -> str:
    """Return that the first line is a row, if it has values where names of columns are expected."""
    names = sample.rows.columns
    has_values = any(name[:1].isdigit() and name[-1:].isdigit() for name in names)
    has_names = any(find_time_key(name) and not classify_word(name) for name in names) or list_named("status", names)
    if not has_values or has_names or path.name.lower().endswith(".parquet"):
        return ""
    text = f"there is no header row: line 1 has values, {join_names(names[:6])}. "
    steps = [value for value in sample.rows[names[0]].drop_nulls() if value.endswith((".batch", ".extern"))]
    if steps:
        return f"{text}It was printed by sacct, with steps ({steps[0]}). {PRINT_AGAIN}"
    return f"{text}Put a line with the names of the columns above it. Then type:\n  ttf report {show_name(str(path))}"


def _explain_no_draft(label: str, sample: Sample, draft: Draft) -> str:
    """Return why a table is no record of jobs; empty if it may be one."""
    columns, mapping = sample.rows.columns, draft.entry["mapping"]
    if len(SACCT_NAMES & {*columns}) > 2 and sample.options.get("delimiter") == "|":
        found = [line for line in draft.lines if line.startswith("status: ")]
        text = f"printed by sacct{describe_missing_sacct(columns)}. {sample.rows.height:,} rows."
        return "\n".join([text, *found, PRINT_AGAIN])
    lengths = list_run_times(sample, draft)
    if draft.missing.get("mapping.status") == NO_OUTCOME and lengths and not any(map(mapping.get, ("start", "end"))):
        return (
            f"this is a simulator's input: jobs to come, with their lengths ({join_names(lengths)}), but without "
            "outcomes. Export the record of what ran: state, start and end of jobs. Then type:\n  ttf report jobs.csv"
        )
    if any(map(mapping.get, ("status", "submit", "start", "end"))):
        return ""
    times = join_names(name for name in columns if list_formats(sample.rows[name]))
    return (
        f"a table with the columns {join_names(columns)}. None tells an outcome or a run time of jobs. Columns with "
        f"times: {times}.\nIf each row is a job, map its columns as in docs/your-data.md#a-table-of-another-layout. "
        f"Then type:\n  ttf report {label} --config my.yaml"
    )
