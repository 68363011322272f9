"""`make report`, `make pdf` and the like: which study it is for, and Snakemake started for it.

STUDY names a study that was made; CONFIG, TRACE and DATA say what one is made of; of none of them it is the study made
last, and in a new folder that of config/config.yaml. What follows goes to Snakemake.
"""

import sys

from ttf.engine.process.stopping import end_at_once, ignore_requests, run_apart


def is_remote(arguments: list[str]) -> bool:
    """Whether a profile, which may be of a cluster, runs the jobs."""
    return any(word.startswith("--workflow-profile") for word in arguments)


if __name__ == "__main__":
    run_apart(is_remote(sys.argv))

import argparse
import atexit
import fcntl
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
# Where Snakemake looks for its plugins, as soon as it is imported.
sys.path[:0] = [str(CHECKOUT / "workflow"), str(CHECKOUT / "workflow" / "plugins")]

from study import studies
from study.check import check_arguments
from study.disk import check_writable, use_writable_cache
from study.messages import ConfigError, show
from study.yaml_files import load_yaml, parse_yaml


def typed(study: str, config: str, trace: str, data: str, scatter: str) -> list[str]:
    """Snakemake's arguments for the study; scatter goes with a trace. Raises ConfigError where there is none."""
    if study and (config or trace or data):
        raise ConfigError("STUDY names a study that was made; a new one takes its name from `name:` in CONFIG.")
    if data and (config or trace):
        raise ConfigError(f"DATA={data}: give it alone. What CONFIG would say goes into the file that it writes.")
    if not re.fullmatch(r"[\w-]+(\s*,\s*[\w-]+)*|", trace, re.ASCII):
        raise ConfigError(
            f"TRACE={show(trace)}: expected names of traces (letters, digits, _ and -), a comma between two."
        )
    words = [f"study=[{', '.join(samples()) if trace == 'all' else trace}]"] if trace else []
    files = [written_for(Path(data))] if data else [config] if config else []
    if not words and not files and (name := studies.choose_study(study) if study else studies.find_last_study()):
        others = [other for other in studies.list_studies() if other != name]
        more = f"; STUDY=name for another: {', '.join(others)}" if others and not study else ""
        print(f"study {name}{'' if study else ', made last'}{more}", file=sys.stderr)
        return studies.find_arguments(name)
    return studies.format_arguments(files, [*words, *([scatter] if scatter else [])])


def samples() -> list[str]:
    """The embedded samples of the registry."""
    return [name for name, entry in load_yaml(CHECKOUT / "config" / "traces.yaml").items() if "embedded" in entry]


def written_for(data: Path) -> str:
    """The configuration of a study of this data, in the folder of the study; one that is there already is kept."""
    from study.recognise import format_configuration, recognise

    found = recognise(data)
    file = studies.STUDIES / found.name / studies.DATA_CONFIG_NAME
    text = format_configuration(found)
    print(found.why, file=sys.stderr)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    elif load_yaml(file, str(file)) != parse_yaml(text, str(file)):
        print(f"{file} was edited, and is used as it stands.", file=sys.stderr)
    print(f"study {found.name}; its configuration, to be kept and edited: {file}", file=sys.stderr)
    return str(file)


def unfinished(folder: Path) -> bool:
    """Hold the folder until this process and those that it forks have ended; whether the run before was killed.

    Snakemake's own lock is a file that a killed run leaves behind; the kernel lets go of this one. Waits while another
    run by `make` has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder / "run", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another run is at work in this folder; waiting until it has ended.", file=sys.stderr, flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)
    killed = bool(os.read(file, 1))
    os.pwrite(file, b"1", 0)
    atexit.register(os.ftruncate, file, 0)
    return killed


def with_plugins(arguments: Sequence[str], here: bool) -> list[str]:
    """Snakemake's arguments for a run that tells of its progress and, where its jobs run here, forks their scripts.

    Not for other uses of Snakemake, of which its own output is wanted.
    """
    others = ("-n", "--dry-run", "--dryrun", "--lint", "--quiet", "-q", "--report", "--summary", "--verbose")
    if any(word.split("=")[0] in others for word in arguments):
        return [*arguments]
    return ["--logger", "progress", *(["--executor", "forks"] if here else []), *arguments]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("study", "config", "trace", "data", "scatter"):
        parser.add_argument(f"--{name}", default="")
    given, rest = parser.parse_known_args(arguments)
    try:
        check_writable()
        use_writable_cache()
        words = typed(**vars(given))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    check_arguments([*words, *rest])
    killed = unfinished(Path(".snakemake/ttf"))
    if killed:
        unlock = [sys.executable, "-m", "snakemake", "--quiet", "all", "--unlock"]
        subprocess.run([*unlock, *words, *rest], check=False, stderr=subprocess.DEVNULL)
    # In this process: it is the one that is asked to stop.
    from snakemake.cli import main as snakemake

    code = None
    try:
        snakemake(with_plugins([*words, *rest], here=not is_remote(rest)))
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        code = 130
    ignore_requests()
    end_at_once(code)


if __name__ == "__main__":
    main(sys.argv[1:])
