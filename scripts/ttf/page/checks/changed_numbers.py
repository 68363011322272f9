"""The numbers of a study that differ from earlier results, and the possible causes by the two manifests."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ttf.display.trace_numbers import is_interval_field
from ttf.engine.provenance.manifest_graph import Manifest
from ttf.engine.words import plural
from ttf.page.checks.thresholds import describe_number, read_interval, to_single_line

# Packages that run jobs, draw, typeset or compress, but compute no numbers.
NOT_COMPUTING = frozenset(
    [
        "altair",
        "great-tables",
        "jinja2",
        "markupsafe",
        "pypandoc-binary",
        "snakemake",
        "snakemake-interface-logger-plugins",
        "typst",
        "vl-convert-python",
    ]
)
MOST_CHANGES = 10  # at the head of the list


@dataclass(frozen=True)
class Results:
    """The results of a study. metrics: subject -> its numbers; paths: subject -> its metrics.json in the manifest.

    manifest: empty if published with pseudonyms. configuration: the parsed configuration of the manifest.
    """

    metrics: Mapping[str, Mapping[str, Mapping[str, Any]]]
    paths: Mapping[str, str] = field(default_factory=dict)
    manifest: Manifest = field(default_factory=Manifest)
    configuration: Mapping[str, Any] = field(default_factory=dict)


class Move(NamedTuple):
    """A number that moved."""

    subject: str
    key: str


def find_moves(earlier: Results, current: Results) -> list[Move]:
    """Return the common numbers whose value, unit or interval differs, in the order of `current`.

    Bounds of an interval are reported with their number, or alone if that did not move. Without a manifest of the
    earlier results, texts are skipped, because they may be pseudonyms.
    """
    moved = []
    for subject in [name for name in current.metrics if name in earlier.metrics]:
        old, new = earlier.metrics[subject], current.metrics[subject]
        changed_keys = [key for key in new if key in old and _number_state(old, key) != _number_state(new, key)]
        moved_groups = {key.rpartition(".")[0] for key in changed_keys if not is_interval_field(key)}
        for key in changed_keys:
            if is_interval_field(key) and key.rpartition(".")[0] in moved_groups:
                continue
            if earlier.manifest or not isinstance(new[key]["value"], str):
                moved.append(Move(subject, key))
    return moved


def _number_state(metrics: Mapping[str, Mapping[str, Any]], key: str) -> tuple:
    """Return (value, unit, interval) of a number."""
    number = metrics[key]
    return number["value"], number["unit"], read_interval(metrics, key)


def _list_libraries(manifest: Mapping[str, Any]) -> dict[str, str | None]:
    computing = {name: text for name, text in manifest.get("packages", {}).items() if name not in NOT_COMPUTING}
    return {"Python": manifest.get("python")} | computing


def _differs(earlier: Any, current: Any, strict: bool) -> bool:
    """Whether two configurations differ; a key of only one of them counts if `strict`."""
    if isinstance(earlier, dict) and isinstance(current, dict):
        if strict and earlier.keys() != current.keys():
            return True
        return any(_differs(earlier[key], current[key], strict) for key in earlier.keys() & current.keys())
    return earlier != current


# Words ------------------------------------------------------------------------------------------------


def describe_causes(earlier: Results, current: Results) -> str:
    """Return the clause after "moved": "because the program changed (0.1.0 → 1.0.0)"."""
    old, new = earlier.manifest, current.manifest
    if not (old and new):
        return "for an unknown reason: results published with pseudonyms have no manifest"
    has_new_program = old["code"] != new["code"]
    # Versions of the program may differ in their configuration keys.
    has_new_configuration = _differs(earlier.configuration, current.configuration, strict=not has_new_program)
    has_new_data = _count_raw_files(old) != _count_raw_files(new)
    libraries = ", ".join(_changed_libraries(old, new))
    clauses = [f"the program changed{_versions(old, new)}"] * has_new_program
    clauses += [f"libraries changed ({libraries})"] * bool(libraries)
    clauses += ["the configuration changed"] * has_new_configuration + ["the data changed"] * has_new_data
    if not clauses:
        return "although data, program, libraries and configuration are the same in both manifests"
    advice = "; to separate the causes, run the old data with the new program and configuration"
    return f"because {' and '.join(clauses)}{advice * (has_new_data and len(clauses) > 1)}"


def _count_raw_files(manifest: Mapping[str, Any]) -> Counter:
    """Return SHA-256 -> number of raw files, whatever their names."""
    return Counter(file["sha256"] for file in manifest["raw"].values())


def _versions(earlier: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """Return both versions of the program, else both commits, or "" if neither differs."""
    versions = earlier.get("version"), current.get("version")
    if None not in versions and versions[0] != versions[1]:
        return f" ({to_single_line(versions[0])} → {to_single_line(versions[1])})"
    commits = earlier["git"]["revision"], current["git"]["revision"]
    if None not in commits and commits[0] != commits[1]:
        return f" (commit {commits[0][:12]} → {commits[1][:12]})"
    return ""


def _changed_libraries(earlier: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[str]:
    earlier_versions, current_versions = _list_libraries(earlier), _list_libraries(current)
    for name in sorted(earlier_versions.keys() | current_versions.keys()):
        if earlier_versions.get(name) != current_versions.get(name):
            yield to_single_line(
                f"{name} {earlier_versions.get(name) or 'none'} → {current_versions.get(name) or 'none'}"
            )


def describe_earlier_value(move: Move, earlier: Results) -> str:
    return f"was {describe_number(earlier.metrics[move.subject], move.key)}"


def measure_change(move: Move, earlier: Results, current: Results) -> float:
    """Return |new - old| over both margins of error towards each other, in quadrature; 0 without two intervals."""
    old, new = (results.metrics[move.subject] for results in (earlier, current))
    old_interval, new_interval = (read_interval(metrics, move.key) for metrics in (old, new))
    if old_interval is None or new_interval is None or old[move.key]["unit"] != new[move.key]["unit"]:
        return 0.0
    # (value, interval) of the lower estimate, then of the higher one.
    pairs = [(old[move.key]["value"], old_interval), (new[move.key]["value"], new_interval)]
    (low, (_, low_high, _)), (high, (high_low, _, _)) = sorted(pairs, key=lambda pair: pair[0])
    margin = 0.0 if low_high is None else math.hypot(low_high - low, high - high_low)
    return (high - low) / margin if margin else 0.0


def _rank_changes(moved: list[Move], earlier: Results, current: Results) -> Iterator[str]:
    """Yield lines on the largest changes by their intervals, the largest first."""
    # A number under two keys has the same change, and is listed once.
    move_by_size = {measure_change(move, earlier, current): move for move in reversed(moved)}
    largest = sorted(filter(None, move_by_size), reverse=True)[:MOST_CHANGES]
    if largest:
        yield f"The largest {plural(len(largest), 'change')}, in margins of error of both intervals:"
    yield from (f"  {size:.2f}: {_describe_move(move_by_size[size], earlier, current)}" for size in largest)


def _describe_move(move: Move, earlier: Results, current: Results) -> str:
    value = describe_number(current.metrics[move.subject], move.key)
    return f"{move.subject}: {to_single_line(move.key)}: {value}; {describe_earlier_value(move, earlier)}"


def report_moves(earlier: Results, current: Results) -> Iterator[str]:
    """Yield lines on the largest changes, on all numbers that moved, and the totals."""
    moved = find_moves(earlier, current)
    yield from _rank_changes(moved, earlier, current)
    if moved:
        yield f"{plural(len(moved), 'number')} moved {describe_causes(earlier, current)}:"
    yield from (f"  {_describe_move(move, earlier, current)}" for move in moved)
    for name in sorted(current.metrics.keys() ^ earlier.metrics.keys()):
        yield f"{name}: only in {'the earlier results' if name in earlier.metrics else 'the study'}."
    subjects = current.metrics.keys() & earlier.metrics.keys()
    n_new, n_gone = (
        sum(len(results.metrics[name].keys() - other_results.metrics[name].keys()) for name in subjects)
        for results, other_results in ((current, earlier), (earlier, current))
    )
    n_common = sum(len(current.metrics[name].keys() & earlier.metrics[name].keys()) for name in subjects)
    yield f"{plural(n_common, 'number')} compared, including interval bounds; {n_new:,} are new, {n_gone:,} are gone."
