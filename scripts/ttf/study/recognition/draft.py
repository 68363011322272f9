"""A draft of the mapping of an unknown table of jobs, from its header and its first rows, for the format table.

A column is taken for a key if its name and its values agree (config/column_names.yaml). If two columns could be the
key, neither is taken.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ttf.raw.raw_tables import AUTOMATIC
from ttf.study.recognition.column_terms import (
    FORMATS,
    SECONDS,
    are_durations,
    classify_flag,
    classify_word,
    counts_from_zero,
    drop_equal_columns,
    find_time_key,
    find_unit,
    list_candidates,
    list_decimals,
    list_formats,
    parse_numbers,
    parse_times,
    split_name,
)
from ttf.study.recognition.entries import format_listing
from ttf.study.recognition.first_lines import show_name
from ttf.study.recognition.table_sample import BLANK_WORDS, TERMS, Sample

MOST_WORDS = 30
# Share of the rows with different ids.
LEAST_UNIQUE = 0.99
NUMBER_KEYS = ("gpus", "cpus", "nodes", "memory", "runtime")
OPTIONAL_KEYS = (
    *("user", "account", "partition", "gpus", "gpu_type"),
    *("cpus", "memory", "nodes", "exit_code", "reason"),
)
NO_OUTCOME = (
    "no usable column has the name or the words of an outcome (state, exit code), and only outcomes tell failures"
)


@dataclass
class Draft:
    """A trace's entry in the registry, null where a key must be completed.

    taken: "key: column" of the columns without a comment. lines: what else was found. missing: path of a key -> how to
    complete it.
    """

    entry: dict[str, Any] = field(default_factory=lambda: {"mapping": {}})
    taken: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Return the columns of the file that are mapped so far."""
        parts = filter(None, self.entry["mapping"].values())
        return [part if isinstance(part, str) else part["column"] for part in parts]

    @property
    def explanation(self) -> list[str]:
        return [f"  {'; '.join(self.taken)}"] * bool(self.taken) + [f"  {line}" for line in self.lines]

    def take(self, key: str, part: str | dict[str, Any], comment: str = "") -> None:
        """Map a key of the entry to a column (`part`), and say so."""
        self.entry["mapping"][key] = part
        text = f"{key}: {show_name(self.columns[-1])}"
        if comment:
            self.lines.append(f"{text} ({comment})")
        else:
            self.taken.append(text)

    def require(self, path: str, text: str) -> None:
        """Say in `missing` how to complete a key of the entry, which is null unless it has a value."""
        *parents, key = path.split(".")
        values = self.entry
        for parent in parents:
            values = values.setdefault(parent, {})
        values.setdefault(key, None)
        self.missing[path] = text

    def ask_for_outcomes(self, unclear: list[str]) -> None:
        """Require that each of these words of the status, if any, is moved to an outcome."""
        if unclear:
            self.entry["outcomes"]["unclear"] = unclear
            text = f"move each word to the outcome that it means: {join_names(unclear)}"
            self.require("outcomes.unclear", text)


def draft_mapping(sample: Sample) -> Draft:
    """Return the draft of a table's entry."""
    draft = Draft()
    _draft_job_id(sample, draft)
    _draft_status(sample, draft)
    _draft_times(sample, draft)
    for key in OPTIONAL_KEYS:
        _draft_optional_key(key, sample, draft)
    _draft_numbers(sample, draft)
    _draft_blanks(sample, draft)
    draft.entry |= sample.options
    draft.lines += [f"not used: {show_name(name)}: {note}" for name, note in sample.notes.items()]
    unused = [name for name in sample.rows.columns if name not in draft.columns]
    draft.lines += [f"not used: {join_names(unused)}"] if unused else []
    return draft


# Fields -------------------------------------------------------------------------------------------------


def _draft_job_id(sample: Sample, draft: Draft) -> None:
    names, rows = list_candidates("job_id", sample), sample.rows
    unique = [name for name in names if rows[name].drop_nulls().n_unique() >= LEAST_UNIQUE * rows.height]
    steps = rows[names[0]].str.contains(r"\.(batch|extern|[0-9]+)$") if names else pl.Series([False])
    if steps.all() and rows[names[0]].str.contains("[a-z]$").any():
        text = f"each row is a step, such as {rows[names[0]][0]}; only rows of whole jobs tell outcomes: sacct -X"
        draft.require("mapping.job_id", text)
    elif len(unique) == 1:
        draft.take("job_id", unique[0])
    elif not names:
        draft.lines.append("job_id: no usable column has such a name, so each row is a job")
    elif len(names) == 1 and rows[names[0]].null_count() <= (1 - LEAST_UNIQUE) * rows.height:
        draft.take("job_id", names[0])
        draft.require("unique_ids", "ids repeat: false if each row is a job, true if a second row of an id is an error")
    else:
        draft.require("mapping.job_id", _describe_candidates(unique or names))


def _draft_status(sample: Sample, draft: Draft) -> None:
    """Map the column whose name or words tell the outcome; else a flag such as success, or an exit code."""
    words_by_column, phrases = dict[str, list[str]](), set[str]()
    for name in sample.words.columns:
        words = sample.words[name].drop_nulls().unique(maintain_order=True)
        first_words = words.str.extract(r"^(\S+)").unique(maintain_order=True)
        if 0 < len(first_words) <= MOST_WORDS:
            clear_words = [word for word in words[: MOST_WORDS + 1] if classify_word(word)]
            # A reason or a number may follow, as in CANCELLED by 1234.
            is_phrase = len(words) - len(clear_words) > len([word for word in first_words if not classify_word(word)])
            phrases |= {name} if is_phrase else set()
            words_by_column[name] = (first_words if is_phrase else words).to_list()
    words_by_column = {name: words for name, words in words_by_column.items() if len(words) <= MOST_WORDS}
    readable = [name for name, words in words_by_column.items() if all(map(classify_word, words))]
    names = [name for name in list_candidates("status", sample) if name in words_by_column]
    outcomes = {name: {*map(classify_word, words_by_column[name])} for name in readable}
    # A state such as completed may stand beside a conclusion.
    conclusions = [name for name in names if len(outcomes.get(name, ())) > 1]
    candidates = conclusions if len(conclusions) == 1 else [name for name in names if name in readable] or names
    last_words = TERMS["names"]["status"][0].split()
    candidates = candidates or [name for name in readable if {*split_name(name)[-1:]} & {*last_words}]
    # Without such a name the words tell; a single outcome, or the first words of a text, might be chance.
    candidates = candidates or [name for name in readable if name not in phrases and len(outcomes[name]) > 1]
    if len(candidates) == 1:
        (name,) = candidates
        _take_status(
            sample, draft, name, {word: classify_word(word) for word in words_by_column[name]}, name in phrases
        )
    elif candidates or not _draft_other_outcome(sample, draft, words_by_column):
        names = list_candidates("status", sample)
        text = f"{show_name(names[0])} has more than {MOST_WORDS} different words" if names else NO_OUTCOME
        draft.require("mapping.status", _describe_candidates(candidates) if candidates else text)
        draft.require("outcomes", "list its words under success, failure, cancelled, running and others")


def _draft_other_outcome(sample: Sample, draft: Draft, words_by_column: Mapping[str, list[str]]) -> bool:
    """Map a flag such as success or is_failed, or an exit code, about which the user is asked; return whether so."""
    for name, words in words_by_column.items():
        if all(classify_flag(name, word) for word in words):
            _take_status(sample, draft, name, {word: classify_flag(name, word) for word in words})
            return True
    for name in list_candidates("exit_code", sample):
        zero = next((word for word in ("0", "0:0", "0.0") if word in sample.rows[name]), None)
        if zero is not None:
            draft.take("status", name)
            count = (sample.rows[name] == zero).sum()
            draft.require(
                "outcomes",
                f"{show_name(name)} is the only outcome: {zero} in {count:,} rows, another in "
                f'{sample.rows[name].count() - count:,}. If {zero} is success: {{success: ["{zero}"], failure: ["*"]}}',
            )
            return True
    return False


def _take_status(
    sample: Sample, draft: Draft, name: str, outcome_by_word: Mapping[str, str | None], is_phrase: bool = False
) -> None:
    counts = dict(sample.words[name].str.extract(r"^(\S+)" if is_phrase else "^(.*)$").value_counts().iter_rows())
    words = sorted(outcome_by_word)
    outcomes = {outcome: [word for word in words if outcome_by_word[word] == outcome] for outcome in TERMS["outcomes"]}
    outcomes = {outcome: words for outcome, words in outcomes.items() if words}
    draft.entry["outcomes"] = outcomes
    comment = "; ".join(
        f"{outcome}: {join_names([f'{word} {counts[word]:,}' for word in words])}"
        for outcome, words in outcomes.items()
    )
    draft.take("status", {"column": name, "first_word": True} if is_phrase else name, comment)
    if states := [word for word in words if "".join(split_name(word.lower())) in TERMS["infra_failures"].split()]:
        draft.entry["infra_failures"] = {"states": states}
    draft.ask_for_outcomes([word for word in words if not outcome_by_word[word]])


def _draft_times(sample: Sample, draft: Draft) -> None:
    formats = {name: formats for name in sample.rows.columns if (formats := list_formats(sample.rows[name]))}
    named = {name: key for name in sample.rows.columns if (key := find_time_key(name))}
    if not named.keys() & formats.keys():
        formats |= {name: [SECONDS] for name in named if counts_from_zero(sample.rows[name])}
    columns = {
        key: drop_equal_columns(sample.rows, [name for name in formats if named.get(name) == key])
        for key in TERMS["times"]
    }
    submit, start, end = columns["submit"] or columns["created"], columns["start"], columns["end"] or columns["last"]
    if not columns["submit"] and not (submit and start):
        submit = start = submit or start
    unused_times = [name for name in formats if name not in (*submit, *start, *end)]
    comment = "also start, so no waits are computed" if submit and submit == start else ""
    for key, names in (("submit", submit), ("start", start), ("end", end)):
        # Names of this time whose values are not in one form.
        mixed = [name for name in named if named[name] == key and name not in formats and not names]
        mixed = [name for name in mixed if sample.words[name].str.contains("[0-9]{2}").any()]
        if len(names) == 1:
            if (
                key != "submit"
                and sample.rows[names[0]].drop_nulls().str.contains("^[0-9]{4}-[0-9]{2}-[0-9]{2}$").all()
            ):
                draft.require(f"mapping.{key}", f"{show_name(names[0])} has no time of day")
            else:
                draft.take(key, names[0], comment if key == "submit" else "")
        elif mixed:
            draft.require(f"mapping.{key}", _describe_mixed_times(sample, mixed[0]))
        elif key == "end" and not names:
            _draft_runtime(sample, draft, unused_times)
        elif names or (key == "start" and not submit):
            draft.require(f"mapping.{key}", _describe_candidates(names or unused_times))
        elif key == "start":
            draft.lines.append("start: no usable column, so no run times are computed")
    _draft_format(sample, draft, [name for name in formats if name in draft.columns], formats)


def _describe_mixed_times(sample: Sample, name: str) -> str:
    """Return which cells of a column with the name of a time are no times in the form of the others."""
    values = sample.rows[name]
    form = max(FORMATS, key=lambda form: parse_times(values.head(50), form).sum())
    is_other = values.is_not_null() & parse_times(values, form).is_null()
    cells = sample.describe_cells(name, is_other)
    return f"{is_other.sum():,} of {values.count():,} cells of {show_name(name)} are no times in one form: {cells}"


def _draft_format(sample: Sample, draft: Draft, columns: list[str], formats: Mapping[str, list[str]]) -> None:
    """Set the format that all times have in common, if it is not recognised anyway, and the zone."""
    common = [format for format in (*FORMATS, SECONDS) if all(format in formats[name] for name in columns)]
    common = [format for format in common if "%.f" not in format or format.replace("%.f", "") not in common]
    if columns and common == [SECONDS]:
        text = f"{join_names(columns)}: the times count from 0, not from 1970; write seconds, if that is their unit"
        draft.require("times.format", text)
        return
    if columns and len(common) != 1:
        reason = f"no value decides between {' and '.join(common)}" if common else "the times have different forms"
        draft.require("times.format", f"{join_names(columns)}: {reason}")
    elif columns and common != [AUTOMATIC]:
        draft.entry["times"] = {"format": common[0]}
        draft.lines.append(f"times.format: {common[0]}")
    cells = (sample.rows[name].alias("") for name in columns)
    cells = (cell.filter(parse_times(cell, common[0]).is_not_null()) if common else cell for cell in cells)
    values = pl.concat([pl.Series(dtype=pl.String), *cells]).drop_nulls()
    if not values.str.contains(r"(Z|UTC|:[0-9.]+ ?[+-][0-9]{2}(:?[0-9]{2})?)$|^[0-9.e+]{9,}$").all():
        draft.entry.setdefault("times", {})["zone"] = "UTC"
        draft.lines.append("times.zone: UTC is assumed, because the times name no zone")


def _draft_runtime(sample: Sample, draft: Draft, unused_times: list[str]) -> None:
    """Map a run time in place of an end, if there is a start; ask for the unit that nothing tells."""
    units = list_run_times(sample, draft)
    name, *others = [name for name in units if units[name]] or [*units, ""]
    unit = units.get(name)
    if not name:
        draft.require("mapping.end", _describe_candidates(unused_times))
    elif not draft.entry["mapping"].get("start"):
        text = f"name the start, and replace end by runtime: {{column: {show_name(name)}, unit: {unit or 's'}}}"
        draft.require("mapping.end", text)
    elif [*filter(None, others)]:
        draft.require("mapping.end", f"there is no end, and the run time could be {' or '.join(map(show_name, units))}")
    else:
        comment = f"{unit}, as {sample.rows[name].max()!r}" if unit else ""
        draft.take("runtime", {"column": name, "unit": unit or None}, comment)
        if not unit:
            median = parse_numbers(sample.rows[name]).quantile(0.5)
            draft.require(
                "mapping.runtime.unit", f"s, min, h, d or ms? The median of {show_name(name)} is {median:,.6g}"
            )


def list_run_times(sample: Sample, draft: Draft) -> dict[str, str]:
    """Map each column with the name and the values of a run time to its unit, empty if nothing tells it."""
    names = [name for name in list_candidates("runtime", sample) if name not in draft.columns]
    units = {name: find_unit("runtime", name) for name in names if list_decimals(sample.rows[name])}
    return units | {name: "text" for name in names if are_durations(sample.rows[name])}


def _draft_optional_key(key: str, sample: Sample, draft: Draft) -> None:
    candidates = [name for name in list_candidates(key, sample) if name not in draft.columns]
    names = candidates
    if key in NUMBER_KEYS:
        names = [name for name in candidates if list_decimals(sample.rows[name])]
        # A name such as gpu may also be that of a type.
        if candidates and not names and sample.rows[candidates[0]].str.contains("^[0-9]").any():
            is_other = sample.rows[candidates[0]].is_not_null() & parse_numbers(sample.rows[candidates[0]]).is_null()
            cells = sample.describe_cells(candidates[0], is_other)
            draft.lines.append(f"{key}: not taken; {show_name(candidates[0])} has cells that are no numbers: {cells}")
    elif key == "gpu_type":
        names = [name for name in candidates if not list_decimals(sample.rows[name])]
    unit = find_unit(key, names[0]) if names else ""
    if len(names) > 1:
        draft.lines.append(f"{key}: not taken; {_describe_candidates(names)}")
    elif names and key == "memory" and not unit:
        draft.lines.append(f"memory: not taken; the name {show_name(names[0])} tells no unit")
    elif names:
        draft.take(key, {"column": names[0], "unit": unit} if unit else names[0])


def _draft_numbers(sample: Sample, draft: Draft) -> None:
    """Set the decimal mark by which most cells of the mapped numbers are read, if a point alone is not enough."""
    names = [name for key, name in _list_mapped(draft) if key in NUMBER_KEYS and not _is_text(draft, key)]
    scores = {
        decimal: sum(parse_numbers(sample.rows[name], decimal).count() for name in names) for decimal in ("", ",", ".")
    }
    best = [decimal for decimal, score in scores.items() if score == max(scores.values())]
    if "" not in best and len(best) > 1:
        cells = [cell for name in names for cell in sample.rows[name].drop_nulls() if "," in cell]
        draft.require("numbers.decimal", f'in {cells[0]}, is the comma a decimal mark? Then ",", otherwise "."')
    elif "" not in best:
        draft.entry["numbers"] = {"decimal": best[0]}
        draft.lines.append(f"numbers.decimal: {best[0]}, as in {'1.234,5' if best == [','] else '1,234.5'}")


def _list_mapped(draft: Draft) -> list[tuple[str, str]]:
    """Return key and column of the mapping so far."""
    keys = [key for key, part in draft.entry["mapping"].items() if part]
    return [*zip(keys, draft.columns, strict=True)]


def _is_text(draft: Draft, key: str) -> bool:
    part = draft.entry["mapping"][key]
    return isinstance(part, dict) and part.get("unit") == "text"


def _draft_blanks(sample: Sample, draft: Draft) -> None:
    """List the words for no value, and the few cells that are no times or numbers; both count as blank."""
    form = draft.entry.get("times", {}).get("format", AUTOMATIC)
    decimal = (draft.entry.get("numbers") or {}).get("decimal") or ""
    values_by_key, bad_cells = dict[str, set[str]](), []
    for key, name in _list_mapped(draft):
        cells = sample.rows[name]
        is_bad = pl.repeat(False, len(cells), eager=True)
        if key in ("submit", "start", "end") and form:
            is_time = parse_times(cells, form)
            is_bad = cells.is_not_null() & is_time.is_null()
            if (~is_time).any() and form != SECONDS:
                placeholders = sample.describe_cells(name, (~is_time).fill_null(False))
                draft.lines.append(f"{key}: placeholders count as blank: {placeholders}")
        elif key in NUMBER_KEYS and "numbers.decimal" not in draft.missing:
            numbers = parse_numbers(cells, decimal, "duration" if _is_text(draft, key) else "number")
            is_bad = cells.is_not_null() & numbers.is_null()
            if (numbers < 0).any():
                negative = sample.describe_cells(name, (numbers < 0).fill_null(False))
                draft.lines.append(f"{key}: cells below zero count as blank: {negative}")
        values_by_key[key] = {*sample.words[name].filter(~is_bad).drop_nulls()}
        bad_cells += [(key, name, is_bad, {*cells.filter(is_bad)})] if is_bad.any() else []
    outcome_words = {word for words in (draft.entry["outcomes"] or {}).values() for word in words}
    words_used = {word for words in values_by_key.values() for word in words}
    blank = {word for word in words_used - outcome_words if word.lower() in BLANK_WORDS}
    others = [values for key, values in values_by_key.items() if key != "status"]
    for key, name, is_bad, words in bad_cells:
        # A word that is also a value of another column cannot be blank; a state is told apart.
        is_blank = len(words) <= MOST_WORDS and not any(words & values for values in others)
        blank |= words if is_blank else set()
        effect = "cells that count as blank" if is_blank else "cells whose rows are excluded"
        draft.lines.append(f"{key}: {effect}: {sample.describe_cells(name, is_bad)}")
    if blank:
        draft.entry["blank"] = sorted(blank)


# Words --------------------------------------------------------------------------------------------------


def join_names(names: Iterable[str]) -> str:
    return format_listing([*map(show_name, names)])


def _describe_candidates(names: Iterable[str]) -> str:
    candidates = " or ".join(map(show_name, names))
    return f"it could be {candidates}" if candidates else "no usable column looks like it"
