"""What the charts and the page of the comparison call a trace, and what they say that it lacks."""

from collections.abc import Iterable

import polars as pl

from ttf.records.jobs import GPU_BUCKETS

# The jobs of a number of GPUs, and what is not of jobs, as panels and groups of rows are called.
GPUS = {"all": "All GPU jobs"} | {
    gpus: "1 GPU" if gpus == "1" else f"More than {low - 1} GPUs" if high is None else f"{low} to {high} GPUs"
    for gpus, (low, high) in GPU_BUCKETS.items()
}
COMPONENTS = "Components"
# Outcomes after which a run time is that of a whole run.
ENDS = ("success", "failure", "cancelled")
LABEL_LENGTH = 26
# How a reason begins that lies in the trace or its format, not in one row.
NO_OUTCOME = "the format has no outcome "
OF_THE_WHOLE = ("the format", "the trace", "no job of the trace", "no GPU job is")


def trace_labels(traces: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """A label for each (trace, synthetic), by trace: short, different for different traces, and `(synthetic)` if so.

    Names are letters, digits, `_` and `-` (the registry's schema), but may be long; of a long one the middle goes.
    """
    unique: dict[str, str] = {}
    taken: set[str] = set()
    for name, synthetic in traces:
        if name in unique:
            continue
        half = (LABEL_LENGTH - 1) // 2
        label = short = name if len(name) <= LABEL_LENGTH else f"{name[:half]}…{name[-half:]}"
        number = 1
        while label in taken:
            number += 1
            label = f"{short} ({number})"
        taken.add(label)
        unique[name] = f"{label} (synthetic)" if synthetic else label
    return unique


def reasons(table: pl.DataFrame) -> list[tuple[str, str]]:
    """(trace, reason) of the blanks in a table, each once, in its order; outcomes that a format lacks as one reason."""
    given = table.filter(pl.col("reason").is_not_null()).select("trace", "reason").unique(maintain_order=True).rows()
    absent: dict[str, list[str]] = {}
    for trace, reason in given:
        if reason.startswith(NO_OUTCOME):
            absent.setdefault(trace, []).append(reason.removeprefix(NO_OUTCOME))
    together = {trace: f"{NO_OUTCOME}{' or '.join(outcomes)}" for trace, outcomes in absent.items()}
    return list(
        dict.fromkeys((trace, together[trace] if reason.startswith(NO_OUTCOME) else reason) for trace, reason in given)
    )
