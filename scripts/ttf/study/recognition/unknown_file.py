"""The draft of an unknown file: the recipe or the mapping by which it can be read, or why it cannot."""

from dataclasses import dataclass, field
from pathlib import Path

from ttf.study.configuration.mapping import list_mapped_columns
from ttf.study.recognition.column_terms import classify_word, find_time_key, list_formats
from ttf.study.recognition.draft import Draft, draft_mapping, join_names
from ttf.study.recognition.first_lines import read_first_bytes, show_name
from ttf.study.recognition.recipes import find_recipe
from ttf.study.recognition.refusals import SACCT, SACCT_NAMES, describe_missing_sacct, explain_unreadable
from ttf.study.recognition.table_sample import MOST_BYTES, TERMS, Sample, is_json, read_sample, split_header, split_rows


@dataclass
class FileDraft:
    """The entry by which a file can be read, or the refusal.

    explanation: the first line completes "FILE: ". missing: path of a key -> how to complete it.
    """

    refusal: str = ""
    entry: dict = field(default_factory=dict)
    explanation: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        return list_mapped_columns({key: part for key, part in self.entry["mapping"].items() if part})


def draft_file(path: Path) -> FileDraft:
    """Return the draft of a file: by a recipe, by its names and values, or the reason why there is none."""
    label = show_name(str(path))
    refusal = explain_unreadable(path)
    sample = read_sample(path) if not refusal or is_json(path) else None
    if refusal and (sample is None or (draft_mapping(sample) or Draft(refusal=refusal)).refusal):
        return FileDraft(refusal)
    if sample is None:
        return FileDraft(f"{label}: {_explain_no_rows(path)}")
    if refusal := _explain_no_header(path, sample):
        return FileDraft(f"{label}: {refusal}")
    n_rows = f"{sample.rows.height:,} row{'s' if sample.rows.height > 1 else ''}"
    if recipe := find_recipe(sample):
        file, entry = recipe
        return FileDraft(entry=entry, explanation=[f"the columns and states of {file}, which is used."])
    draft = draft_mapping(sample)
    if draft is None or draft.refusal:
        return FileDraft(_explain_no_draft(label, sample, draft))
    if len(SACCT_NAMES & {*sample.rows.columns}) > 2 and sample.options.get("delimiter") == "|":
        return FileDraft(_explain_sacct(label, sample, draft))
    if columns := draft.entry.get("records", {}).get("columns"):
        used = {name: columns[name] for name in draft.columns if columns[name] != name}
        draft.entry["records"] = draft.entry["records"] | {"columns": used}
    first = f"no known format; drafted as a table of jobs from its header and {n_rows}:"
    return FileDraft(entry=draft.entry, explanation=[first, *draft.explanation], missing=draft.missing)


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
    values = [name for name in names if name[:1].isdigit() and (name[-1:].isdigit() or ":" in name)]
    has_names = any(find_time_key(name) and not classify_word(name) for name in names) or any(
        {"".join(name.lower().split("_"))} & {*words.split()} for name in names for words in TERMS["names"]["status"]
    )
    if not values or has_names or path.name.lower().endswith(".parquet"):
        return ""
    step = next((value for value in sample.rows[names[0]] if value and value.endswith((".batch", ".extern"))), "")
    remedy = (
        f"It was printed by sacct, with steps ({step}). Print it with its header and times:\n  {SACCT}\n"
        if step
        else ""
    )
    return f"there is no header row: line 1 has values, {join_names(names[:6])}. " + (
        remedy + "  ttf report jobs.txt"
        if step
        else f"Put a line with the names of the columns above it, and type:\n  ttf report {show_name(str(path))}"
    )


def _explain_sacct(label: str, sample: Sample, draft: Draft) -> str:
    missing = describe_missing_sacct(sample.rows.columns)
    lines = [f"{label}: printed by sacct{missing}. {sample.rows.height:,} rows."]
    lines += [line for line in draft.lines if line.startswith("status: ")]
    return "\n".join([*lines, "Print it again with these columns:", f"  {SACCT}", "  ttf report jobs.txt"])


def _explain_no_draft(label: str, sample: Sample, draft: Draft | None) -> str:
    if draft is not None:
        return f"{label}: {draft.refusal}.\nThen type:\n  ttf report jobs.csv"
    columns = join_names(sample.rows.columns) or "(no usable name)"
    times = join_names(name for name in sample.rows.columns if list_formats(sample.rows[name]))
    lines = [f"{label}: a table with the columns {columns}. None tells an outcome or a run time of jobs."]
    lines += [f"Times are in {times}."] if times else []
    lines.append("If each row is a job, map its columns as in docs/your-data.md#a-table-of-another-layout. Then type:")
    return "\n".join([*lines, f"  ttf report {label} --config my.yaml"])
