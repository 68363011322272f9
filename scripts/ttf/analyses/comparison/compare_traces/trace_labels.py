"""Labels of traces, job sizes and components, and the reasons for blanks."""

from collections.abc import Iterable, Mapping

import polars as pl

from ttf.engine import words
from ttf.records.jobs import GPU_BUCKETS, bucket_label

# Labels of panels and of groups of rows.
ALL_JOBS, COMPONENTS = "All jobs", "Components"
GPUS = {"all": ALL_JOBS} | {gpus: words.capitalise(bucket_label(gpus)) for gpus in GPU_BUCKETS}
# Outcomes that end a run, so that its run time is complete.
RUN_ENDS = ("success", "failure", "cancelled")
LABEL_LENGTH = 26
# Beginnings of the reasons that hold for a whole trace or format.
NO_OUTCOME = "the format has no outcome "
TRACE_REASONS = ("the format", "the trace", "no job is")


def label_size(row: Mapping) -> str:
    """Return the label of the jobs of a row with gpus_low and gpus_high, or of components."""
    if row.get("gives") == "durations":
        return COMPONENTS
    low, high = row["gpus_low"], row["gpus_high"]
    return ALL_JOBS if high is None else f"{words.gpus_label(low, high)} GPU{'s' * (high > 1)}"


def sort_by_size(table: pl.DataFrame) -> pl.DataFrame:
    """Add `jobs_of`, the label of each row's jobs, and sort: all jobs, then by size, then components."""
    jobs_of = pl.Series("jobs_of", [label_size(row) for row in table.iter_rows(named=True)], pl.String)
    return table.with_columns(jobs_of).sort(jobs_of == COMPONENTS, "gpus_high", maintain_order=True)


def trace_labels(traces: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """Return a label by trace: short, unique, and marked `(synthetic)` if so. traces: (name, synthetic).

    Names are letters, digits, `_` and `-` (the registry's schema), but may be long; a long one loses its middle.
    """
    label_by_name: dict[str, str] = {}
    used: set[str] = set()
    for name, synthetic in traces:
        if name in label_by_name:
            continue
        half = (LABEL_LENGTH - 1) // 2
        label = short = name if len(name) <= LABEL_LENGTH else f"{name[:half]}…{name[-half:]}"
        number = 1
        while label in used:
            number += 1
            label = f"{short} ({number})"
        used.add(label)
        label_by_name[name] = f"{label} (synthetic)" if synthetic else label
    return label_by_name


def list_reasons(table: pl.DataFrame) -> list[tuple[str, str]]:
    """List (trace, reason) of the blanks, without repetition; outcomes that a format lacks make one reason."""
    rows = table.filter(pl.col("reason").is_not_null()).select("trace", "reason").unique(maintain_order=True).rows()
    missing_outcomes: dict[str, list[str]] = {}
    for trace, reason in rows:
        if reason.startswith(NO_OUTCOME):
            missing_outcomes.setdefault(trace, []).append(reason.removeprefix(NO_OUTCOME))
    joined = {trace: f"{NO_OUTCOME}{' or '.join(outcomes)}" for trace, outcomes in missing_outcomes.items()}
    merged = ((trace, joined[trace] if reason.startswith(NO_OUTCOME) else reason) for trace, reason in rows)
    return list(dict.fromkeys(merged))
