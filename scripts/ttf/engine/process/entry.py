"""The frame of every rule script: threads, log, errors.

Import it first; it imports nothing that starts threads.
"""

import contextlib
import os
import platform
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ttf.engine.errors import StudyError
from ttf.engine.process.machine import OF_LIBRARIES, explain_error, explain_full_disk
from ttf.engine.process.stopping import end_job_on_request
from ttf.engine.storage.links import resolve_links


def run_rule(main: Callable[[Any], str | None], snakemake: SimpleNamespace) -> None:
    """Call main(snakemake) and write the short text it returns, such as "8,152 pods", to the log.

    A StudyError logs only its message, an error of the machine its explanation (ttf.engine.process.machine), any other
    exception the traceback; all exit with code 1. The terminal shows the log (ttf.study.running.progress). If a
    library ends the process, the log has the output of the library. Thread limits are set before `main`
    imports libraries.
    """
    end_job_on_request()
    limit_libraries(snakemake.threads)
    trace = getattr(snakemake.wildcards, "trace", None)
    stage = f"{trace}: {snakemake.rule}" if trace else snakemake.rule
    log = Path(snakemake.log[0])
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        snakemake.input = resolve_links(getattr(snakemake, "input", []))
        with _libraries_write_to(log):
            summary = main(snakemake)
        _write_log(log, f"{stage}: {summary}" if summary else stage)
    except StudyError as error:
        _write_log(log, str(error))
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Polars is not an Exception
        outputs = getattr(snakemake, "output", ())
        # On a full disk, drawing and typesetting may fail without saying why.
        if message := explain_error(error, outputs) or explain_full_disk(outputs):
            _make_room(outputs)
        with contextlib.suppress(OSError):  # ttf.study.running.progress finds the reason then
            _write_log(log, message or traceback.format_exc())
        sys.exit(1)


@contextlib.contextmanager
def _libraries_write_to(log: Path) -> Iterator[None]:
    """Redirect errors that C and Rust libraries write, such as stack traces, to the log; Python's stay."""
    _write_log(log, OF_LIBRARIES)
    python, terminal, descriptor = sys.stderr, os.dup(2), os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    with open(terminal, "w", buffering=1, errors="backslashreplace") as stderr:  # noqa: PTH123 a file descriptor
        if python is sys.__stderr__:
            sys.stderr = stderr
        try:
            yield
        finally:
            sys.stderr = python
            os.dup2(terminal, 2)


def _make_room(outputs: Any) -> None:
    """Remove unfinished products, as Snakemake would: on a full disk the log needs the space."""
    for output in map(Path, outputs):
        for path in (output, output.with_suffix(".half")):
            with contextlib.suppress(OSError):
                path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)


def _write_log(log: Path, text: str) -> None:
    # File names may be invalid UTF-8, which must not break the log.
    log.write_text(f"{text.rstrip()}\n", encoding="utf-8", errors="backslashreplace")


def limit_libraries(threads: int) -> None:
    """Limit the threads of libraries and fix their code paths; call this before they are imported."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    # The last digits of linear algebra depend on the number of threads, so it gets one. See design: determinism.
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    select_common_code()
    # The streaming engine adds floats in no fixed order; queries that may stream select it explicitly.
    os.environ["POLARS_ENGINE_AFFINITY"] = "in-memory"
    # Prefetched row groups fill memory in proportion to the file and save no time.
    os.environ["POLARS_ROW_GROUP_PREFETCH_SIZE"] = "1"
    # Polars may already be imported in a forked process (snakemake_executor_plugin_forks).
    if polars := sys.modules.get("polars"):
        polars.Config.load("{}")


def select_common_code() -> None:
    """Select the same NumPy code on every processor, so that last digits agree; call before NumPy is imported.

    NumPy and OpenBLAS choose code by processor, which changes last digits of exp, log, matrix products and inverses,
    and the order of ties in argsort. All processors get the code for AVX2 and FMA, which Polars needs anyway.
    """
    if platform.machine() in ("x86_64", "AMD64"):
        os.environ["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
