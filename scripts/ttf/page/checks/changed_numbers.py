"""The numbers of a study that differ from earlier results, and the possible causes: data, program or both.

For each number that moved, the origins of its source table are compared between the two manifests.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from ttf.display.trace_numbers import is_interval_field
from ttf.engine.provenance.manifest_graph import Manifest
from ttf.engine.words import plural
from ttf.page.checks.thresholds import describe_number, read_interval, to_single_line

DATA, PROGRAM, LIBRARIES, CONFIGURATION = "data", "program", "libraries", "configuration"
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
_ANALYSES = "scripts/ttf/analyses/"
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
    """A number that moved; causes: which of the four causes differ in its origin, None if unknown."""

    subject: str
    key: str
    causes: frozenset[str] | None


def find_moves(earlier: Results, current: Results) -> list[Move]:
    """Return the common numbers whose value, unit or interval differs, in the order of `current`.

    Bounds of an interval are reported with their number, or alone if that did not move. Without a manifest of the
    earlier results, texts are skipped, because they may be pseudonyms.
    """
    comparison = _Comparison(earlier, current) if earlier.manifest and current.manifest else None
    moved = []
    for subject in [name for name in current.metrics if name in earlier.metrics]:
        old, new = earlier.metrics[subject], current.metrics[subject]
        changed_keys = [key for key in new if key in old and _number_state(old, key) != _number_state(new, key)]
        moved_groups = {key.rpartition(".")[0] for key in changed_keys if not is_interval_field(key)}
        for key in changed_keys:
            if is_interval_field(key) and key.rpartition(".")[0] in moved_groups:
                continue
            if comparison is None and isinstance(new[key]["value"], str):
                continue
            causes = comparison.find_causes(subject, old[key]["source"], new[key]["source"]) if comparison else None
            moved.append(Move(subject, key, causes))
    return moved


def _number_state(metrics: Mapping[str, Mapping[str, Any]], key: str) -> tuple:
    """Return (value, unit, interval) of a number."""
    number = metrics[key]
    return number["value"], number["unit"], read_interval(metrics, key)


class _Comparison:
    """The differences between two manifests in the origins of any product."""

    def __init__(self, earlier: Results, current: Results):
        self._earlier, self._current = earlier, current
        self._cached_causes = cache(self._find_causes)
        self._libraries = _list_libraries(earlier.manifest) != _list_libraries(current.manifest)
        declarations = [
            {name: facts for name, facts in results.manifest["code"].items() if _makes_parameters(name)}
            for results in (earlier, current)
        ]
        self._has_new_declarations = declarations[0] != declarations[1]
        # Versions of the program may differ in their configuration keys.
        strict = not self._has_new_declarations
        self._has_new_configuration = _differs(earlier.configuration, current.configuration, strict)

    def find_causes(self, subject: str, earlier_source: str, current_source: str) -> frozenset[str]:
        """Return the causes in the origins of the source table, or of all numbers if the table has none."""
        causes = self._cached_causes(subject, earlier_source, current_source)
        return causes or self._cached_causes(subject, "metrics.json", "metrics.json")

    def _find_causes(self, subject: str, earlier_source: str, current_source: str) -> frozenset[str]:
        origins = [
            _Origins.collect(results.manifest, results.paths[subject], source)
            for results, source in ((self._earlier, earlier_source), (self._current, current_source))
        ]
        data, code, parameters = (part[0] != part[1] for part in zip(*origins, strict=True))
        # Only jobs in both manifests: jobs per raw file come and go with the data.
        shared = origins[0].parameters.keys() & origins[1].parameters.keys()
        parameters = any(origins[0].parameters[job] != origins[1].parameters[job] for job in shared)
        causes = {DATA: data, PROGRAM: code or (parameters and self._has_new_declarations), LIBRARIES: self._libraries}
        causes[CONFIGURATION] = parameters and self._has_new_configuration
        return frozenset(cause for cause, differs in causes.items() if differs)


class _Origins(NamedTuple):
    """The origins of a number: counts of raw-file digests, digests of code, parameters of jobs."""

    data: Counter
    code: dict[str, str]
    parameters: dict[str, Any]

    @classmethod
    def collect(cls, manifest: Manifest, metrics: str, source: str) -> "_Origins":
        """Collect the data, code and parameters that made a file: `source`, relative to the folder of `metrics`."""
        writer = manifest["products"][metrics]["job"]
        start = manifest.maker.get(f"{metrics.rpartition('/')[0]}/{source}", writer)
        origins = cls(Counter(), {}, {})
        pending, visited = [start], set()
        while pending:
            if (name := pending.pop()) in visited:
                continue
            visited.add(name)
            job = manifest["jobs"][name]
            origins.code.update(job["code"])
            origins.parameters[name] = job["parameters"]
            for file, digest in job["inputs"].items():
                # Raw files of a sample are generated, but count as data.
                maker = None if file in manifest["raw"] else manifest.maker.get(file)
                if maker:
                    pending.append(maker)
                elif file in manifest["code"]:
                    origins.code[file] = digest
                else:
                    origins.data[digest] += 1
        if start != writer:
            # The list of cells that become numbers, of the analysis of this table only.
            rule = manifest["jobs"][start]["rule"]
            origins.code.update(
                (file, digest)
                for file, digest in manifest["jobs"][writer]["code"].items()
                if not _is_of_another_analysis(file, rule)
            )
        return origins


def _is_of_another_analysis(file: str, rule: str) -> bool:
    """Return whether a file lies in the folder of an analysis other than the rule's."""
    if not file.startswith(_ANALYSES):
        return False
    section, *path = file.removeprefix(_ANALYSES).split("/")
    return len(path) > 1 and section != "shared" and path[0] != rule


def _makes_parameters(file: str) -> bool:
    """Whether a workflow file sets parameters of jobs: defaults, rules, declarations."""
    return file.startswith(("workflow/", "config/", "scripts/ttf/study/")) or file.endswith(("/__init__.py", ".yaml"))


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


def describe_causes(causes: frozenset[str] | None, earlier: Results, current: Results) -> str:
    """Return the clause after "moved": "because the program changed (0.1.0 → 1.0.0)"."""
    if causes is None:
        return "for an unknown reason: results published with pseudonyms have no manifest"
    if not causes:
        return "although data, program, libraries and configuration are the same in both manifests"
    changed = {
        DATA: "the data changed",
        PROGRAM: f"the program changed{_versions(earlier.manifest, current.manifest)}",
        LIBRARIES: f"libraries changed ({', '.join(_changed_libraries(earlier.manifest, current.manifest))})",
        CONFIGURATION: "the configuration changed",
    }
    clauses = [text for cause, text in changed.items() if cause in causes]
    if DATA not in causes or len(causes) == 1:
        return f"because {' and '.join(clauses)}"
    advice = "to separate the causes, run the old data with the new program and configuration"
    return f"because {' and '.join(clauses[1:])} and the data changed; {advice}"


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
    """Yield lines on the largest changes, on all numbers that moved, grouped by cause, and the totals."""
    moved = find_moves(earlier, current)
    yield from _rank_changes(moved, earlier, current)
    for causes in dict.fromkeys(move.causes for move in moved):
        same_cause = [move for move in moved if move.causes == causes]
        yield f"{plural(len(same_cause), 'number')} moved {describe_causes(causes, earlier, current)}:"
        yield from (f"  {_describe_move(move, earlier, current)}" for move in same_cause)
    for name in sorted(current.metrics.keys() ^ earlier.metrics.keys()):
        yield f"{name}: only in {'the earlier results' if name in earlier.metrics else 'the study'}."
    subjects = current.metrics.keys() & earlier.metrics.keys()
    n_new, n_gone = (
        sum(len(results.metrics[name].keys() - other_results.metrics[name].keys()) for name in subjects)
        for results, other_results in ((current, earlier), (earlier, current))
    )
    n_common = sum(len(current.metrics[name].keys() & earlier.metrics[name].keys()) for name in subjects)
    yield f"{plural(n_common, 'number')} compared, including interval bounds; {n_new:,} are new, {n_gone:,} are gone."
