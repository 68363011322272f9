"""`ttf score`: predict the risk that new jobs, or those of a part, fail (docs/risk.md).

The model is the one that serves the trace, for a part the one trained before it, or the named one. If the jobs cannot
be scored, the exit status is 1 with one message, and nothing is written.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ttf.commands.error_ending import with_error_ending
from ttf.engine.errors import StudyError
from ttf.engine.process.entry import limit_libraries
from ttf.engine.provenance.digests import remember_files
from ttf.study import studies
from ttf.study.configuration.documents import suggest_match
from ttf.study.configuration.mapping import list_mapped_columns
from ttf.study.configuration.messages import ConfigError, show
from ttf.study.configuration.model_features import COLUMNS_AFTER_SUBMISSION, explain_missing_risk, list_unmapped_keys
from ttf.study.configuration.named_files import require_file
from ttf.study.recognition.format_declarations import load_formats
from ttf.study.trace import Trace


def find_trace(study: str, name: str) -> tuple[str, Trace]:
    """Return (study, trace) for this trace in this or any study; without a name the study's only trace with a risk.

    Raises ConfigError if there is none.
    """
    configs = studies.read_studies()
    if not configs:
        raise ConfigError("this folder has no study yet. Run `ttf report`.")
    last = studies.choose_study(study) if study or not name else studies.find_last_study()
    order = [last] if study or not name else sorted(configs, key=lambda study_name: study_name != last)
    order = [study_name for study_name in order if study_name in configs]
    study_by_trace = {trace: study_name for study_name in reversed(order) for trace in configs[study_name]["study"]}
    if name and name not in study_by_trace:
        names = ", ".join(study_by_trace)
        raise ConfigError(
            f"--trace {show(name)}: no study here has that trace{suggest_match(name, study_by_trace)} There: {names}."
        )
    traces = {trace: _make_trace(trace, configs[study_name]) for trace, study_name in study_by_trace.items()}
    scorable = {label: trace for label, trace in traces.items() if trace.risk}
    if not name and len(scorable) > 1:
        raise ConfigError(f"which trace? Name it: --trace {' or --trace '.join(scorable)}")
    if not scorable or (name and name not in scorable):
        unscorable = [traces[name]] if name else traces.values()
        raise ConfigError("\n".join(explain_missing_risk(t.name, t.entry, t.format) for t in unscorable))
    name = name or next(iter(scorable))
    return study_by_trace[name], scorable[name]


def _make_trace(name: str, config: dict[str, Any]) -> Trace:
    """Make the trace for the risk alone, which needs no raw table."""
    entry = config["registry"][name]
    no_files: dict[str, Any] = {"raw_files": {}, "parts": {}, "sample_files": {}, "unread_entries": {}, "sources": {}}
    format = load_formats()[entry["format"]]
    no_files |= {"windows": {}, "taxonomy": {}, "outage_rules": [], "schema": None}
    return Trace(name, entry, format, config, **no_files, shares=1, tells_reasons=False)


def output_paths(trace: Trace, file: str, part: str, out: str) -> tuple[Path, Path]:
    """Return the paths of the scores and the skew. Raises ConfigError if `out` is invalid."""
    stem = Path(file or part).stem
    scores = Path(out) if out else Path("results") / trace.name / "scores" / f"{stem}.csv"
    skew = scores.with_suffix(".skew.csv")
    if scores.suffix != ".csv":
        raise ConfigError(f"--out {out}: name a file that ends in .csv.")
    if folders := [path for path in (scores, skew) if path.is_dir()]:
        raise ConfigError(f"{folders[0]}: that is a folder; name another file, --out file.csv.")
    if file and any(path.resolve() == Path(file).resolve() for path in (scores, skew)):
        raise ConfigError(f"--out {out}: that would overwrite {file}; name another.")
    return scores, skew


def check_products(study: str, trace: str) -> None:
    """Raise StudyError if the models of a trace, or their inputs, differ from what the study made."""
    from ttf.engine.provenance.manifest_graph import Manifest, find_changed_products

    folder, manifest = Path("results") / trace, Manifest.read(studies.STUDIES / study / "manifest.json")
    files = [*sorted(folder.glob("models/*.json")), folder / "jobs.parquet", folder / "tables" / "risk_evaluation.csv"]
    if problems := find_changed_products(manifest, [str(file) for file in files if file.exists()]):
        raise StudyError(f"study {study}: its results are edited or out of date, so no job is scored: {problems[0]}")


def read_record(trace: Trace) -> Any:
    """Return the jobs of the trace, a lazy frame. Raises StudyError if they were not made."""
    from ttf.engine.storage.on_disk import scan_parquet

    file = Path("results") / trace.name / "jobs.parquet"
    if not file.is_file():
        raise StudyError(f"{file}: not there. Run `ttf report`.")
    return scan_parquet(file)


def score(trace: Trace, record: Any, file: str, part: str, window: str, paths: tuple[Path, Path]) -> Iterator[str]:
    """Write the scores and the skew; yield messages about them, line by line. record: the jobs of the trace."""
    import polars as pl

    from ttf.analyses.queue.suggest_requests.compute import list_profile, suggest_next
    from ttf.analyses.risk.predict_failure.trust import list_highest_scores
    from ttf.analyses.shared.risk.features import compute_job_features
    from ttf.analyses.shared.risk.new_jobs import read_new_jobs
    from ttf.analyses.shared.risk.score import (
        compute_skew,
        list_constant_columns,
        list_gpu_columns,
        map_needed_features,
        score_jobs,
    )
    from ttf.analyses.shared.risk.training_jobs import load_population

    folder, types = Path("results") / trace.name, record.collect_schema()
    clock, left_out = (trace.risk or {})["clock"], list[str]()
    name, model = _choose_model(folder / "models", record, part, window, trace)
    columns, gpus = map_needed_features(model), list_gpu_columns(trace.format["at_submission"])
    request = list_profile(trace.format["at_submission"], types.names())
    besides = [column for column in (*list_constant_columns(model), *gpus, *request) if column in types]
    if missing := [column for column in columns if column not in types]:
        raise StudyError(
            f"{folder}/jobs.parquet: no column {', '.join(missing)}, which the model needs. Run `ttf report`."
        )
    past_jobs = load_population(record, ["job_id", *columns, *besides])
    past_known = compute_job_features(past_jobs.jobs, model.encoder.features, clock, past_jobs)
    if part:
        rows = (past_jobs.jobs["part"].cast(pl.String) == part).fill_null(False).to_numpy()
        jobs, new_known = past_jobs.jobs.filter(rows), past_known.take(rows)
        if not jobs.height:
            raise StudyError(f"--part {part}: none of its jobs has a submission; nothing to score.")
    else:
        jobs, left_out = read_new_jobs(
            Path(file), _require_of_new_jobs(trace, columns, types, besides, past_jobs.submit_s)
        )
        new_known = compute_job_features(jobs, model.encoder.features, clock, past_jobs)
    trained = past_jobs.ended & (past_jobs.known_s < model.until_s)
    scores = score_jobs(model, jobs, new_known, past_jobs.jobs.filter(trained), gpus, clock)
    scores = scores.with_columns(suggest_next(record, jobs, trace.format["at_submission"]))
    skew_table = compute_skew(model, jobs, new_known, past_jobs.jobs.filter(trained), past_known.take(trained))
    _write_scores_and_skew(scores, skew_table, paths)
    yield from _describe_trust(trace, folder, scores, skew_table, name, model.kind)
    if early := (jobs["submit_s"] < model.until_s).sum():
        yield f"note: {early:,} were submitted before the training ended; of them the score is no forecast."
    if left_out:
        yield f"note: columns that the model does not use, left out: {', '.join(left_out)}."
    yield from list_highest_scores(scores)
    yield f"{paths[0]}, {paths[1]}"


def _choose_model(folder: Path, record: Any, part: str, window: str, trace: Trace) -> tuple[str, Any]:
    """Return (window, model) for the part, of the window, or the current one. record: the jobs of the trace."""
    import polars as pl

    from ttf.analyses.shared.risk import served_models
    from ttf.analyses.shared.risk.score import read_model
    from ttf.analyses.shared.risk.training_jobs import NEVER

    parts = _list_parts(record, part, trace.name)
    if window:
        stored = served_models.model_of_window(folder, window)
    elif part:
        first_s = record.filter(part=part).select(pl.col("submit_s").min()).collect().item()
        stored = served_models.model_before_part(folder, part, parts, NEVER if first_s is None else first_s)
    else:
        try:
            stored = served_models.current_model(folder)
        except StudyError as error:
            raise StudyError(f"{error}{list_unmapped_keys(trace.name, trace.entry, trace.format)}") from None
    try:
        return stored.window, read_model(stored.document)
    except StudyError as error:
        raise StudyError(f"{stored.file}: {error}. Delete it and run `ttf report`.") from None


def _list_parts(record: Any, part: str, trace: str) -> list[str]:
    """Return the parts of the trace in order. Raises ConfigError if `part` is not among them."""
    if not part:
        return []
    if "part" not in record.collect_schema():
        raise ConfigError(f"--part {show(part)}: the trace {trace} is not given in parts; give a file.")
    parts = record.select("part").collect()["part"].drop_nulls().unique(maintain_order=True).to_list()
    if part not in parts:
        raise ConfigError(
            f"--part {show(part)}: no such part of {trace}{suggest_match(part, parts)} There: {', '.join(parts)}."
        )
    return parts


def _require_of_new_jobs(trace: Trace, columns: Any, types: Any, optional: Sequence[str], submit_s: Any) -> Any:
    """Return the required content of a file of new jobs. submit_s: submissions of existing jobs, ascending."""
    from ttf.analyses.shared.risk.new_jobs import FileRequirements
    from ttf.formats.table.read import submission_columns

    later_columns = (*COLUMNS_AFTER_SUBMISSION, *trace.format["written_later"])
    submit_range = (int(submit_s[0]), int(submit_s[-1])) if len(submit_s) else (0, 0)
    spec = FileRequirements(columns, types, optional, later_columns, trace.clock is not None, submit_range)
    if trace.entry["format"] != "table":
        return spec
    mapped = submission_columns(trace.entry, trace.format["at_submission"])
    all_names = list_mapped_columns(trace.entry["mapping"])
    return replace(spec, mapped=mapped, mapped_later={*all_names} - {column.name for column in mapped})


def _describe_trust(trace: Trace, folder: Path, scores: Any, skew_table: Any, window: str, kind: str) -> Iterator[str]:
    """Yield sentences on how far to trust the scores, the verdict of the evaluation first."""
    from ttf.analyses.risk.predict_failure import EVALUATION, trust
    from ttf.engine.storage.tables import read_table

    table = folder / EVALUATION.path
    verdict, *further_lines = trust.describe_evaluation(read_table(table, EVALUATION) if table.is_file() else None)
    yield verdict
    if trace.synthetic:
        yield f"The trace {trace.name} is synthetic: its scores say nothing of a real cluster."
    yield trust.describe_scores(scores, window, kind)
    yield trust.describe_skew(skew_table)
    yield from further_lines


def _write_scores_and_skew(scores: Any, skew: Any, paths: tuple[Path, Path]) -> None:
    """Check and write both tables or neither: they get their names when both are complete."""
    from ttf.analyses.shared.risk.score import SCORES, SKEW
    from ttf.engine.storage.tables import write_product

    unfinished = [path.with_name(f".{path.name}.{os.getpid()}.csv") for path in paths]
    try:
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        try:
            for frame, contract, file in zip((scores, skew), (SCORES, SKEW), unfinished, strict=True):
                write_product(frame, contract, file)
            for file, path in zip(unfinished, paths, strict=True):
                file.replace(path)
        finally:
            for file in unfinished:
                file.unlink(missing_ok=True)
    except OSError as error:
        raise StudyError(f"{paths[0]}: cannot be written ({error.strerror}).") from None
    remember_files(paths)


@with_error_ending(1)
def print_scores(study: str, trace_name: str, file: str, part: str, model: str, out: str) -> int:
    """Write the scores and print how far to trust them; return the exit status."""
    limit_libraries(int(os.environ.get("POLARS_MAX_THREADS") or os.cpu_count() or 1))
    if bool(file) == bool(part):
        raise ConfigError("what? ttf score new_jobs.csv, or ttf score --trace name --part name")
    study, trace = find_trace(study, trace_name)
    if file:
        require_file(file, "FILE")
    record = read_record(trace)
    _list_parts(record, part, trace.name)
    paths = output_paths(trace, file, part, out)
    check_products(study, trace.name)
    for line in score(trace, record, file, part, model, paths):
        print(line)
    return 0
