"""The numbers of a study that are others than they were, and whether the data, the program or both can be why.

By the manifests of then and now: of each number that moved, what lies behind its source table in one and in the other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from ttf.display.trace_numbers import is_beside
from ttf.engine.provenance.manifest_graph import Manifest
from ttf.engine.words import plural
from ttf.page.checks.thresholds import described, flat, interval_of

DATA, PROGRAM, LIBRARIES, CONFIGURATION = "data", "program", "libraries", "configuration"
# They run jobs, draw, set and pack; no number is computed by them.
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
        "xlsxwriter",
    ]
)
_ANALYSES = "scripts/ttf/analyses/"


@dataclass(frozen=True)
class Results:
    """A study as it was made: metrics: subject -> its numbers; paths: subject -> its metrics.json in the manifest.

    manifest None: what was published with pseudonyms has none. configuration: as the manifest has it, read.
    """

    metrics: Mapping[str, Mapping[str, Mapping[str, Any]]]
    paths: Mapping[str, str] = field(default_factory=dict)
    manifest: Manifest | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)


class Move(NamedTuple):
    """A number that moved; causes: which of the four differ behind it, None where nothing tells."""

    subject: str
    key: str
    causes: frozenset[str] | None


def moves(then: Results, now: Results) -> list[Move]:
    """Every number of both whose value, unit or interval is another, in the order of now.

    Ends of an interval go with the number that they lie about; they stand alone where no such number moved. Without a
    manifest of then, texts are left out: they may be pseudonyms.
    """
    why = _Why(then, now) if then.manifest is not None and now.manifest is not None else None
    found = []
    for subject in [name for name in now.metrics if name in then.metrics]:
        before, after = then.metrics[subject], now.metrics[subject]
        other = [key for key in after if key in before and _state(before, key) != _state(after, key)]
        about = {key.rpartition(".")[0] for key in other if not is_beside(key)}
        for key in other:
            if is_beside(key) and key.rpartition(".")[0] in about:
                continue
            if why is None and isinstance(after[key]["value"], str):
                continue
            causes = why.of(subject, before[key]["source"], after[key]["source"]) if why else None
            found.append(Move(subject, key, causes))
    return found


def _state(metrics: Mapping[str, Mapping[str, Any]], key: str) -> tuple:
    about = metrics[key]
    return about["value"], about["unit"], interval_of(metrics, key)


class _Why:
    """What differs between two manifests, behind any of their products."""

    def __init__(self, then: Results, now: Results):
        self._then, self._now = then, now
        self._of = cache(self._causes)
        self._libraries = _libraries(then.manifest) != _libraries(now.manifest)
        made = [
            {name: of for name, of in each.manifest["code"].items() if _makes_parameters(name)} for each in (then, now)
        ]
        self._declared_anew = made[0] != made[1]
        # Another version of the program may know keys that the other lacks.
        self._configured_anew = _differ(then.configuration, now.configuration, strict=not self._declared_anew)

    def of(self, subject: str, source_then: str, source_now: str) -> frozenset[str]:
        """Behind the source table of a number; behind all that the numbers are made of, where nothing differs there."""
        return self._of(subject, source_then, source_now) or self._of(subject, "metrics.json", "metrics.json")

    def _causes(self, subject: str, source_then: str, source_now: str) -> frozenset[str]:
        behind = [
            _Behind.of(each.manifest, each.paths[subject], source)
            for each, source in ((self._then, source_then), (self._now, source_now))
        ]
        data, code, parameters = (part[0] != part[1] for part in zip(*behind, strict=True))
        # Which jobs both have: a job for each file of raw data comes and goes with the data.
        shared = behind[0].parameters.keys() & behind[1].parameters.keys()
        parameters = any(behind[0].parameters[job] != behind[1].parameters[job] for job in shared)
        causes = {DATA: data, PROGRAM: code or (parameters and self._declared_anew), LIBRARIES: self._libraries}
        causes[CONFIGURATION] = parameters and self._configured_anew
        return frozenset(cause for cause, differs in causes.items() if differs)


class _Behind(NamedTuple):
    """What lies behind a number: digests of raw files and how many have each, digests of code, parameters of jobs."""

    data: Counter
    code: dict[str, str]
    parameters: dict[str, Any]

    @classmethod
    def of(cls, manifest: Manifest, metrics: str, source: str) -> "_Behind":
        """source: a path beside metrics.json, or metrics.json itself for all that lies behind it."""
        writer = manifest["products"][metrics]["job"]
        product = f"{metrics.rpartition('/')[0]}/{source}"
        start = manifest.maker.get(product, writer)
        behind = cls(Counter(), {}, {})
        pending, seen = [start], set()
        while pending:
            if (name := pending.pop()) in seen:
                continue
            seen.add(name)
            job = manifest["jobs"][name]
            behind.code.update(job["code"])
            behind.parameters[name] = job["parameters"]
            for file, digest in job["inputs"].items():
                # A sample's raw files are made too: how is what its data are.
                maker = None if file in manifest["raw"] else manifest.maker.get(file)
                if maker:
                    pending.append(maker)
                elif file in manifest["code"]:
                    behind.code[file] = digest
                else:
                    behind.data[digest] += 1
        if start != writer:
            # Which cells are numbers: of all analyses' lists that of the one whose table it is.
            rule = manifest["jobs"][start]["rule"]
            behind.code.update(
                (file, digest)
                for file, digest in manifest["jobs"][writer]["code"].items()
                if not _is_of_another_analysis(file, rule)
            )
        return behind


def _is_of_another_analysis(file: str, rule: str) -> bool:
    """Whether a file of the workflow lies in the folder of an analysis, and of another one than the rule's."""
    if not file.startswith(_ANALYSES):
        return False
    section, *path = file.removeprefix(_ANALYSES).split("/")
    return len(path) > 1 and section != "shared" and path[0] != rule


def _makes_parameters(file: str) -> bool:
    """Whether jobs have parameters from this file of the workflow: defaults, rules, declarations."""
    return file.startswith(("workflow/", "config/")) or file.endswith(("/__init__.py", ".yaml"))


def _libraries(manifest: Mapping[str, Any]) -> dict[str, str | None]:
    """Python and the libraries that numbers are computed by, with their versions."""
    packages = manifest.get("packages", {})
    computing = {name: version for name, version in packages.items() if name not in NOT_COMPUTING}
    return {"Python": manifest.get("python")} | computing


def _differ(then: Any, now: Any, strict: bool) -> bool:
    """Whether two configurations say other things. strict: also where only one has a key."""
    if isinstance(then, dict) and isinstance(now, dict):
        if strict and then.keys() != now.keys():
            return True
        return any(_differ(then[key], now[key], strict) for key in then.keys() & now.keys())
    return then != now


# Words ------------------------------------------------------------------------------------------------


def because(causes: frozenset[str] | None, then: Results, now: Results) -> str:
    """Why numbers moved, behind "moved": because the program changed (0.1.0 → 1.0.0)."""
    if causes is None:
        return "and why cannot be told: there is no manifest of then, as what is published with pseudonyms has none"
    if not causes:
        return "though by the two manifests neither data nor program, libraries or configuration did"
    changed = {
        DATA: "the data did",
        PROGRAM: f"the program changed{_versions(then.manifest, now.manifest)}",
        LIBRARIES: f"libraries changed ({', '.join(_other_versions(then.manifest, now.manifest))})",
        CONFIGURATION: "the configuration changed",
    }
    said = [text for cause, text in changed.items() if cause in causes]
    if DATA not in causes or len(causes) == 1:
        return f"because {' and '.join(said)}"
    others = " and ".join(said[1:])
    rerun = "run the old data again with what is new"
    return f"and {others}, and the data did too: which of them moved it cannot be told; {rerun}"


def _versions(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Of the program, by its version, else by its commit; "" where neither tells them apart."""
    versions = then.get("version"), now.get("version")
    if None not in versions and versions[0] != versions[1]:
        return f" ({flat(versions[0])} → {flat(versions[1])})"
    commits = then["git"]["revision"], now["git"]["revision"]
    if None not in commits and commits[0] != commits[1]:
        return f" (commit {commits[0][:12]} → {commits[1][:12]})"
    return ""


def _other_versions(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    before, after = _libraries(then), _libraries(now)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield flat(f"{name} {before.get(name) or 'none'} → {after.get(name) or 'none'}")


def was(move: Move, then: Results) -> str:
    return f"was {described(then.metrics[move.subject], move.key)}"


def told_of_moves(then: Results, now: Results) -> Iterator[str]:
    """All numbers that moved, under what can be why, and how many there are."""
    found = moves(then, now)
    for causes in dict.fromkeys(move.causes for move in found):
        of_them = [move for move in found if move.causes == causes]
        yield f"{plural(len(of_them), 'number')} moved {because(causes, then, now)}:"
        for move in of_them:
            is_now = described(now.metrics[move.subject], move.key)
            yield f"  {move.subject}: {flat(move.key)}: {is_now}; {was(move, then)}"
    for name in sorted(now.metrics.keys() ^ then.metrics.keys()):
        yield f"{name}: only in {'the earlier results' if name in then.metrics else 'the study'}."
    both = now.metrics.keys() & then.metrics.keys()
    new, gone = (
        sum(len(one.metrics[name].keys() - other.metrics[name].keys()) for name in both)
        for one, other in ((now, then), (then, now))
    )
    same = sum(len(now.metrics[name].keys() & then.metrics[name].keys()) for name in both)
    yield f"{plural(same, 'number')} compared, with the ends of intervals; {new:,} are new, {gone:,} are gone."
