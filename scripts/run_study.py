"""`make report`, `make pdf` and the like: choose the study and start Snakemake for it.

STUDY names an existing study; CONFIG, TRACE and DATA define a new one; CONFIG with DATA is a mapping and its table.
Default: the most recent study, in a new folder that of config/config.yaml. All other arguments go to Snakemake.
"""

import sys

from ttf.engine.process.stopping import exit_now, ignore_requests, run_in_child


def is_remote(arguments: list[str]) -> bool:
    """Return whether a profile, maybe of a cluster, runs the jobs."""
    return any(word.startswith("--workflow-profile") for word in arguments)


if __name__ == "__main__":
    run_in_child(is_remote(sys.argv))

import argparse
import atexit
import contextlib
import fcntl
import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
# Snakemake searches this path for plugins when it is imported.
sys.path[:0] = [str(CHECKOUT / "workflow"), str(CHECKOUT / "workflow" / "plugins")]

from study import studies
from study.check import check_arguments
from study.disk import check_writable, use_writable_cache
from study.messages import ConfigError, show
from study.yaml_files import load_yaml


def resolve_arguments(study: str, config: str, trace: str, data: str, scatter: str) -> list[str]:
    """Return Snakemake's arguments for the study; scatter needs a trace. Raises ConfigError for bad options."""
    if study and (config or trace or data):
        raise ConfigError("STUDY names a study that was made; a new one takes its name from `name:` in CONFIG.")
    if data and trace:
        raise ConfigError(f"DATA={data}: give it alone or with CONFIG, not with TRACE.")
    if not re.fullmatch(r"[\w-]+(\s*,\s*[\w-]+)*|", trace, re.ASCII):
        raise ConfigError(
            f"TRACE={show(trace)}: expected names of traces (letters, digits, _ and -), a comma between two."
        )
    settings = [f"study=[{', '.join(samples()) if trace == 'all' else trace}]"] if trace else []
    if data and config:
        settings = [format_data_setting(Path(config), Path(data))]
    config_files = [config] if config else [write_configuration(Path(data))] if data else []
    if not (settings or config_files) and (name := studies.choose_study(study) if study else studies.find_last_study()):
        other_studies = [study_name for study_name in studies.list_studies() if study_name != name]
        hint = f"; STUDY=name for another: {', '.join(other_studies)}" if other_studies and not study else ""
        print(f"study {name}{'' if study else ', the most recent'}{hint}", file=sys.stderr)
        update_configuration(name)
        return studies.find_arguments(name)
    return studies.format_arguments(config_files, [*settings, *([scatter] if scatter else [])])


def format_data_setting(config: Path, data: Path) -> str:
    """Return the setting that the only trace of the configuration is read from this folder, or file of a table.

    It also names files of tables with a key of their own, such as units, that the folder holds.

    Raises ConfigError if there are other numbers of traces, or if the file is missing, or JSON to be converted.
    """
    from study.recognise import find_keyed_files

    document = load_yaml(config, str(config))
    traces = document.get("study")
    if not isinstance(traces, list) or len(traces) != 1:
        raise ConfigError(f"DATA={data}: CONFIG={config} must name one trace, as in study: [mine].")
    if not data.exists():
        raise ConfigError(f"DATA={data}: there is no such file or folder.")
    if data.suffix == ".json" and (program := config.with_suffix(".jq")).is_file():
        raise ConfigError(
            f"DATA={data}: first make a CSV of it: jq -r -f {program} {data} > {data.with_suffix('.csv')}"
        )
    location = {"folder": str(data)} if data.is_dir() else {"folder": str(data.parent), "files": {"rows": data.name}}
    registry = document.get("registry")
    entry = registry.get(traces[0]) if isinstance(registry, dict) else None
    keyed_files = find_keyed_files(data, entry) if isinstance(entry, dict) else {}
    return f"registry={json.dumps({str(traces[0]): location | keyed_files})}"


def samples() -> list[str]:
    """Return the embedded samples of the registry."""
    return [name for name, entry in load_yaml(CHECKOUT / "config" / "traces.yaml").items() if "embedded" in entry]


def write_configuration(data: Path) -> str:
    """Write the configuration of a study of this data into its folder, unless it exists; return its path.

    Raises ConfigError for a draft that is not completed.
    """
    from study.recognise import find_new_files, format_configuration, recognise

    recognised = recognise(data)
    file = studies.STUDIES / recognised.name / studies.DATA_CONFIG_NAME
    is_edited = studies.write_data_configuration(recognised.name, data, format_configuration(recognised))
    if not (is_edited and recognised.missing):
        print(recognised.explanation, file=sys.stderr)
    if is_edited:
        new_files = find_new_files(recognised, load_yaml(file, str(file)))
        print("\n".join([f"{file} was edited, and is used as it stands.", *new_files]), file=sys.stderr)
    if recognised.missing and not is_edited:
        keys = [f"  registry.{recognised.name}.{key}: {text}" for key, text in recognised.missing.items()]
        raise ConfigError("\n".join([f"{file}: complete these keys, then type the same command again:", *keys]))
    print(f"study {recognised.name}; its configuration, to be kept and edited: {file}", file=sys.stderr)
    return str(file)


def update_configuration(name: str) -> None:
    """Recognise the data of a study again, for logs and health events that were added, if it was made from a folder."""
    data = studies.find_data(name)
    with contextlib.suppress(ConfigError):  # the start of the run names what it does not read
        if data is not None:
            write_configuration(data)


def lock_folder(folder: Path) -> bool:
    """Lock the folder until this process and its forks have ended; return whether the previous run was killed.

    Waits while another run by `make` holds the lock. A killed run leaves Snakemake's own lock file behind; the kernel
    releases this lock.
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


def add_plugins(arguments: Sequence[str], local: bool) -> list[str]:
    """Add the plugins that show progress and, for local jobs, fork the scripts; not in modes with own output."""
    other_modes = ("-n", "--dry-run", "--dryrun", "--lint", "--quiet", "-q", "--report", "--summary", "--verbose")
    if any(word.split("=")[0] in other_modes for word in arguments):
        return [*arguments]
    return ["--logger", "progress", *(["--executor", "forks"] if local else []), *arguments]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("study", "config", "trace", "data", "scatter"):
        parser.add_argument(f"--{name}", default="")
    options, snakemake_arguments = parser.parse_known_args(arguments)
    try:
        check_writable()
        use_writable_cache()
        settings = resolve_arguments(**vars(options))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    check_arguments([*settings, *snakemake_arguments])
    if lock_folder(Path(".snakemake/ttf")):  # the previous run was killed
        unlock = [sys.executable, "-m", "snakemake", "--quiet", "all", "--unlock"]
        subprocess.run([*unlock, *settings, *snakemake_arguments], check=False, stderr=subprocess.DEVNULL)
    # In this process, because it receives the requests to stop.
    from snakemake.cli import main as snakemake

    code = None
    try:
        snakemake(add_plugins([*settings, *snakemake_arguments], local=not is_remote(snakemake_arguments)))
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:
        code = 130
    ignore_requests()
    exit_now(code)


if __name__ == "__main__":
    main(sys.argv[1:])
