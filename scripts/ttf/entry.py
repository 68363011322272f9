"""What every rule script does around its one call: threads, log, errors, a line of progress.

Import it first: it imports nothing itself that starts threads.
"""

import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ttf.errors import StudyError


def run_rule(main: Callable[[Any], str | None], snakemake: SimpleNamespace) -> None:
    """Call main(snakemake); what it returns, a short text such as "8,152 pods", goes into the line of progress.

    A StudyError is shown as its message alone, any other exception by where its traceback lies; both end the script
    with exit code 1. Libraries are told how many threads they may use before `main` imports them.
    """
    _limit_threads(snakemake.threads)
    start = time.perf_counter()
    subject = getattr(snakemake.wildcards, "trace", None)
    stage = f"{subject}: {snakemake.rule}" if subject else snakemake.rule
    log = Path(snakemake.log[0])
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        done = main(snakemake)
    except StudyError as error:
        _write(log, str(error))
        print(f"\nerror in {stage}\n{error}\n", file=sys.stderr, flush=True)
        sys.exit(1)
    except Exception as error:
        _write(log, traceback.format_exc())
        what = traceback.format_exception_only(error)[0].strip().partition("\n")[0]
        print(f"\nerror in {stage}: {what}\nThe traceback is in {log}\n", file=sys.stderr, flush=True)
        sys.exit(1)
    seconds = time.perf_counter() - start
    line = f"{stage}: {done}" if done else stage
    _write(log, line)
    print(f"  {line} ({seconds:.1f} s)", file=sys.stderr, flush=True)


def _write(log: Path, text: str) -> None:
    # The name of a file need not be valid UTF-8, and a log must not fail over it.
    log.write_text(f"{text.rstrip()}\n", encoding="utf-8", errors="backslashreplace")


def _limit_threads(threads: int) -> None:
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    # Linear algebra gives other last digits with another number of threads, so it gets one. See design: determinism.
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    # The streaming engine adds floats in no fixed order; what may stream asks for it by name.
    os.environ["POLARS_ENGINE_AFFINITY"] = "in-memory"
