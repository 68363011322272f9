"""What every rule script does around its one call: threads, log, errors.

Import it first: it imports nothing itself that starts threads.
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
from ttf.engine.process.machine import OF_LIBRARIES, full, refused
from ttf.engine.process.stopping import end_job_on_request
from ttf.engine.storage.links import by_own_names


def run_rule(main: Callable[[Any], str | None], snakemake: SimpleNamespace) -> None:
    """Call main(snakemake); what it returns, a short text such as "8,152 pods", goes into the line of the log.

    Of a StudyError the log has the message alone, of what the machine refuses what that is
    (ttf.engine.process.machine), of any other exception the traceback; all end the script with exit code 1. The
    terminal shows what the log says (study.progress). If a library ends the process, the log has what the library
    wrote. Libraries learn how many threads they may use before `main` imports them.
    """
    end_job_on_request()
    limit_libraries(snakemake.threads)
    subject = getattr(snakemake.wildcards, "trace", None)
    stage = f"{subject}: {snakemake.rule}" if subject else snakemake.rule
    log = Path(snakemake.log[0])
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        snakemake.input = by_own_names(getattr(snakemake, "input", []))
        with _libraries_write_to(log):
            done = main(snakemake)
        _write(log, f"{stage}: {done}" if done else stage)
    except StudyError as error:
        _write(log, str(error))
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        outputs = getattr(snakemake, "output", ())
        # What draws or sets may be without room for saying why it failed.
        if words := refused(error, outputs) or full(outputs):
            _make_room(outputs)
        with contextlib.suppress(OSError):  # then the run looks for the reason (study.progress)
            _write(log, words or traceback.format_exc())
        sys.exit(1)


@contextlib.contextmanager
def _libraries_write_to(log: Path) -> Iterator[None]:
    """Send to the log what libraries in C and Rust write as an error, such as a stack trace; Python's own stays."""
    _write(log, OF_LIBRARIES)
    python, terminal, descriptor = sys.stderr, os.dup(2), os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    with open(terminal, "w", buffering=1, errors="backslashreplace") as stderr:  # noqa: PTH123 as a number it is used
        if python is sys.__stderr__:
            sys.stderr = stderr
        try:
            yield
        finally:
            sys.stderr = python
            os.dup2(terminal, 2)


def _make_room(outputs: Any) -> None:
    """Remove the unfinished products, as Snakemake will: on a full disk the log needs the room."""
    for output in map(Path, outputs):
        for path in (output, output.with_suffix(".half")):
            with contextlib.suppress(OSError):
                path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)


def _write(log: Path, text: str) -> None:
    # The name of a file need not be valid UTF-8, and a log must not fail over it.
    log.write_text(f"{text.rstrip()}\n", encoding="utf-8", errors="backslashreplace")


def limit_libraries(threads: int) -> None:
    """Before any of them is imported: how many threads they may use, and which of their code for which processor."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    # Linear algebra gives other last digits with another number of threads, so it gets one. See design: determinism.
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    take_common_code()
    # The streaming engine adds floats in no fixed order; what may stream asks for it by name.
    os.environ["POLARS_ENGINE_AFFINITY"] = "in-memory"
    # Row groups read ahead wait in memory, the more of them the larger the file, and nothing is the sooner for it.
    os.environ["POLARS_ROW_GROUP_PREFETCH_SIZE"] = "1"
    # Of a process that was forked from one where Polars has been imported (snakemake_executor_plugin_forks).
    if polars := sys.modules.get("polars"):
        polars.Config.load("{}")


def take_common_code() -> None:
    """Before NumPy is imported: the code that every processor gets, so that last digits are the same on each.

    NumPy and OpenBLAS look at the processor and take other code for it, with other last digits: exp, log and the order
    of ties in argsort; products and inverses of matrices. What Polars needs, AVX2 and FMA, is what all get.
    """
    if platform.machine() in ("x86_64", "AMD64"):
        os.environ["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
