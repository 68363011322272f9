"""`make score FILE=new_jobs.csv`, or `PART=name` of a trace in parts: the risk that jobs fail, as docs/risk.md says.

The model is the one that serves the trace, of a part the one made before it, or MODEL=window. Exit code 1 with one
message where the jobs cannot be scored; then nothing is written.
"""

from ttf.engine.process.stopping import run_apart

if __name__ == "__main__":
    run_apart()

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "workflow"))

from study import studies
from study.documents import suggest_match
from study.format_declarations import load_formats
from study.messages import ConfigError
from study.model_features import COLUMNS_AFTER_SUBMISSION
from study.named_files import require_file
from study.trace import Trace
from ttf.engine.errors import StudyError
from ttf.engine.process.entry import limit_libraries
from ttf.engine.provenance.digests import MEMORY, Memory


def trace_of(study: str, name: str) -> tuple[str, Trace]:
    """(the study, the trace of this name), of this study or any; without a name the study's only one that has a risk.

    Raises ConfigError where there is none.
    """
    made = studies.read_studies()
    if not made:
        raise ConfigError("this folder has no study yet. Run `make report`.")
    last = studies.choose_study(study) if study or not name else studies.find_last_study()
    order = [last] if study or not name else sorted(made, key=lambda other: other != last)
    study_by_trace = {trace: of for of in reversed(order) if of in made for trace in made[of]["study"]}
    if name and name not in study_by_trace:
        there = ", ".join(study_by_trace)
        raise ConfigError(
            f"TRACE={name}: no study here has that trace{suggest_match(name, study_by_trace)} There: {there}."
        )
    traces = {trace: _trace(trace, made[of]) for trace, of in study_by_trace.items()}
    scored = {trace: about for trace, about in traces.items() if about.risk}
    if name and name not in scored:
        raise ConfigError(f"TRACE={name}: it has no jobs whose submission is known; nothing to score.")
    if not name and len(scored) != 1:
        raise ConfigError(
            f"which trace? Name it: TRACE={' or TRACE='.join(scored)}" if scored else "no trace has jobs."
        )
    name = name or next(iter(scored))
    return study_by_trace[name], scored[name]


def _trace(name: str, config: dict[str, Any]) -> Trace:
    """As far as the risk is asked of it; no raw table need be there any more."""
    entry = config["registry"][name]
    none: dict[str, Any] = {"raw_files": {}, "parts": {}, "made_files": {}, "left_out": {}, "sources": {}}
    format = load_formats()[entry["format"]]
    none |= {"windows": {}, "taxonomy": {}, "outage_rules": [], "schema": None}
    return Trace(name, entry, format, config, **none, shares=1, tells_reasons=False)


def places(trace: Trace, file: str, part: str, out: str) -> tuple[Path, Path]:
    """Where the scores and the skew are written. Raises ConfigError where OUT is no such place."""
    stem = Path(file or part).stem
    scores = Path(out) if out else Path("results") / trace.name / "scores" / f"{stem}.csv"
    skew = scores.with_suffix(".skew.csv")
    if scores.suffix != ".csv":
        raise ConfigError(f"OUT={out}: name a file that ends in .csv.")
    if folders := [place for place in (scores, skew) if place.is_dir()]:
        raise ConfigError(f"{folders[0]}: that is a folder; name another file, OUT=file.csv.")
    if file and any(place.resolve() == Path(file).resolve() for place in (scores, skew)):
        raise ConfigError(f"OUT={out}: that would overwrite FILE={file}; name another.")
    return scores, skew


def check_products(study: str, trace: str) -> None:
    """Raises StudyError where the models of a trace, or what is read beside them, are not as the study made them."""
    from ttf.engine.provenance.manifest_graph import Manifest, not_as_made

    folder, manifest = Path("results") / trace, Manifest.read(studies.STUDIES / study / "manifest.json")
    files = [*sorted(folder.glob("models/*.json")), folder / "jobs.parquet", folder / "tables" / "risk_evaluation.csv"]
    if problems := not_as_made(manifest, [str(file) for file in files if file.exists()]):
        raise StudyError(f"study {study}: its results are edited or out of date, so no job is scored: {problems[0]}")


def score(trace: Trace, file: str, part: str, window: str, to: tuple[Path, Path]) -> Iterator[str]:
    """Write the scores and the skew; what is said of them, line by line."""
    import polars as pl
    from ttf.analyses.shared.risk.features import submitted
    from ttf.analyses.shared.risk.new_jobs import read_new_jobs
    from ttf.analyses.shared.risk.score import gpu_columns, known_besides, needed, scored, skew
    from ttf.analyses.shared.risk.training_jobs import population
    from ttf.engine.storage.on_disk import scan_parquet

    folder = Path("results") / trace.name
    if not (folder / "jobs.parquet").is_file():
        raise StudyError(f"{folder}/jobs.parquet: not there. Run `make report`.")
    record = scan_parquet(folder / "jobs.parquet")
    types = record.collect_schema()
    name, model = _model(folder / "models", record, part, window, trace.name)
    columns, gpus = needed(model), gpu_columns(trace.format["at_submission"])
    besides = [column for column in (*known_besides(model), *gpus) if column in types]
    if gone := [column for column in columns if column not in types]:
        raise StudyError(
            f"{folder}/jobs.parquet: no column {', '.join(gone)}, which the model needs. Run `make report`."
        )
    past = population(record, ["job_id", *columns, *besides])
    past_known = submitted(past.jobs, model.encoder.features, trace.risk["clock"], past)
    if part:
        rows = (past.jobs["part"].cast(pl.String) == part).fill_null(False).to_numpy()
        jobs, known, left_out = past.jobs.filter(rows), past_known.take(rows), []
        if not jobs.height:
            raise StudyError(f"PART={part}: none of its jobs has a submission; nothing to score.")
    else:
        jobs, left_out = read_new_jobs(Path(file), _asked(trace, columns, types, besides, past.submit_s))
        known = submitted(jobs, model.encoder.features, trace.risk["clock"], past)
    trained = past.ended & (past.known_s < model.until_s)
    scores = scored(model, jobs, known, past.jobs.filter(trained), gpus)
    differs = skew(model, jobs, known, past.jobs.filter(trained), past_known.take(trained))
    _write(scores, differs, to)
    yield from _said(trace, folder, scores, differs, name, model.kind)
    if early := (jobs["submit_s"] < model.until_s).sum():
        yield f"note: {early:,} were submitted before the training ended; of them the score is no forecast."
    if left_out:
        yield f"note: columns that the model does not use, left out: {', '.join(left_out)}."
    yield f"{to[0]}, {to[1]}"


def _model(folder: Path, record: Any, part: str, window: str, trace: str) -> tuple[str, Any]:
    """(the window of the model that scores, the model). record: the jobs of the trace."""
    import polars as pl
    from ttf.analyses.shared.risk import served_models
    from ttf.analyses.shared.risk.score import model_of
    from ttf.analyses.shared.risk.training_jobs import NEVER

    parts = _parts(record, part, trace)
    if window:
        stored = served_models.chosen(folder, window)
    elif part:
        first_s = record.filter(part=part).select(pl.col("submit_s").min()).collect().item()
        stored = served_models.before_part(folder, part, parts, NEVER if first_s is None else first_s)
    else:
        stored = served_models.current(folder)
    try:
        return stored.window, model_of(stored.said)
    except StudyError as error:
        raise StudyError(f"{stored.file}: {error}. Delete it and run `make report`.") from None


def _parts(record: Any, part: str, trace: str) -> list[str]:
    """The parts of the trace in their order. Raises ConfigError where `part` is none of them."""
    if not part:
        return []
    if "part" not in record.collect_schema():
        raise ConfigError(f"PART={part}: the trace {trace} is not given in parts; give FILE.")
    there = record.select("part").collect()["part"].drop_nulls().unique(maintain_order=True).to_list()
    if part not in there:
        raise ConfigError(
            f"PART={part}: no such part of {trace}{suggest_match(part, there)} There: {', '.join(there)}."
        )
    return there


def _asked(trace: Trace, columns: Any, types: Any, besides: Sequence[str], submit_s: Any) -> Any:
    """What a file of new jobs of the trace is to hold. submit_s: of the jobs that are there, ascending."""
    from ttf.analyses.shared.risk.new_jobs import Asked

    later = (*COLUMNS_AFTER_SUBMISSION, *trace.format["written_later"])
    seen = (int(submit_s[0]), int(submit_s[-1])) if len(submit_s) else (0, 0)
    return Asked(columns, types, besides, later, trace.clock is not None, seen)


def _said(trace: Trace, folder: Path, scores: Any, differs: Any, window: str, kind: str) -> Iterator[str]:
    """How far the scores can be trusted: the verdict of the evaluation first."""
    from ttf.analyses.risk.predict_failure import EVALUATION, trust
    from ttf.engine.storage.tables import read_table

    table = folder / EVALUATION.path
    verdict, *more = trust.of_evaluation(read_table(table, EVALUATION) if table.is_file() else None)
    yield verdict
    if trace.synthetic:
        yield f"The trace {trace.name} is synthetic: its scores say nothing of a real cluster."
    yield trust.of_scores(scores, window, kind)
    yield trust.of_skew(differs)
    yield from more


def _write(scores: Any, skew: Any, to: tuple[Path, Path]) -> None:
    """Both tables, checked, or neither: they get their names when both are whole."""
    from ttf.analyses.shared.risk.score import SCORES, SKEW
    from ttf.engine.storage.tables import write_product

    unfinished = [place.with_name(f".{place.name}.{os.getpid()}.csv") for place in to]
    try:
        to[0].parent.mkdir(parents=True, exist_ok=True)
        try:
            for frame, contract, file in zip((scores, skew), (SCORES, SKEW), unfinished, strict=True):
                write_product(frame, contract, file)
            for file, place in zip(unfinished, to, strict=True):
                file.replace(place)
        finally:
            for file in unfinished:
                file.unlink(missing_ok=True)
    except OSError as error:
        raise StudyError(f"{to[0]}: cannot be written ({error.strerror}).") from None
    # Else `make verify` would take them for files of nobody.
    with suppress(OSError):
        memory = Memory(MEMORY)
        memory.keep(memory.digests(map(os.path.relpath, to)))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("file", "part", "trace", "study", "model", "out"):
        parser.add_argument(f"--{name}", default="")
    given = parser.parse_args(arguments)
    limit_libraries(int(os.environ.get("POLARS_MAX_THREADS") or os.cpu_count() or 1))
    try:
        if bool(given.file) == bool(given.part):
            raise ConfigError("what? make score FILE=new_jobs.csv, or make score PART=name TRACE=name")
        study, trace = trace_of(given.study, given.trace)
        if given.file:
            require_file(given.file, "FILE")
        to = places(trace, given.file, given.part, given.out)
        check_products(study, trace.name)
        for line in score(trace, given.file, given.part, given.model, to):
            print(line)
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
