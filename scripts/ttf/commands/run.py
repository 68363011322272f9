"""`ttf report`, `ttf pdf` and the like: choose the study and run Snakemake for it, in this folder."""

import atexit
import contextlib
import fcntl
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ttf.engine.checkout import CHECKOUT
from ttf.engine.errors import StudyError
from ttf.engine.extras import require_extra
from ttf.engine.process.stopping import exit_now, ignore_requests
from ttf.study import studies
from ttf.study.configuration.check import check_typed_layers
from ttf.study.configuration.messages import ConfigError, show
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.running.disk import check_writable, use_writable_cache

DEMO = "sample_slurm"
PIPED = Path("data/stdin/stdin.txt")
_NAMES = re.compile(r"[\w-]+(\s*,\s*[\w-]+)*|", re.ASCII)


def run(
    targets: Sequence[str] = (),
    data: str = "",
    config: str = "",
    trace: str = "",
    study: str = "",
    profile: str = "",
    cores: str = "",
    is_dry: bool = False,
    snakemake: str = "",
    extra: str = "",
) -> None:
    """Run the study in this folder until the targets are made, by default all products; exit with its status.

    data, config and trace define a study, `study` names an existing one; default: the most recent, in a new folder the
    demonstration. profile: a folder, or the name of a shipped one. snakemake: further arguments, as a shell reads them.
    extra: the extra of the distribution that the targets need.
    """
    try:
        if extra:
            require_extra(extra)
        check_writable()
        use_writable_cache()
        settings = resolve_arguments(study, config, trace, data, is_remote=bool(profile))
        typed = _split_words(snakemake)
        has_own_profile = any(word.startswith("--workflow-profile") for word in typed)
        defaults = [] if has_own_profile else find_profile(profile)
        end = typed.index("--") if "--" in typed else len(typed)
        options = [*typed[:end], *(["--cores", cores] if cores else []), *(["--dry-run"] if is_dry else [])]
        targets = [*targets, *typed[end + 1 :]]
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    check_typed_layers(settings)
    snakefile = ["--snakefile", str(CHECKOUT / "Snakefile")]
    # An option with several values would take a target that follows it.
    arguments = [*defaults, *snakefile, *options, *settings, *(["--", *targets] if targets else [])]
    if lock_folder(Path(".snakemake/ttf")):  # the previous run was killed
        unlock = [sys.executable, "-m", "snakemake", "--quiet", "all", "--unlock", *snakefile, *settings]
        subprocess.run(unlock, check=False, stderr=subprocess.DEVNULL)
    # In this process, because it receives the requests to stop.
    from snakemake.cli import main

    code = None
    try:
        main([*choose_plugins(options, is_local=not profile), *arguments])
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:
        code = 130
    ignore_requests()
    exit_now(code)


def _split_words(typed: str) -> list[str]:
    try:
        return shlex.split(typed)
    except ValueError as error:
        raise ConfigError(f"--snakemake {show(typed)}: {error}.") from None


def find_profile(profile: str) -> list[str]:
    """Return Snakemake's arguments for a profile: a folder, or the name of one that is shipped. Raises ConfigError.

    Without one, these are the settings of profiles/default: for a profile Snakemake would build its parser of arguments
    again, a twentieth of a start.
    """
    if not profile:
        settings = load_yaml(CHECKOUT / "profiles" / "default" / "profile.yaml")
        options = [
            [f"--{key}", *([] if value is True else map(str, value if isinstance(value, list) else [value]))]
            for key, value in settings.items()
            if value is not False
        ]
        return ["--workflow-profile", "none", *itertools.chain(*options)]
    folder = next((path for path in (Path(profile), CHECKOUT / "profiles" / profile) if path.is_dir()), None)
    if folder is None:
        # Without the profile, Snakemake would run the jobs on this machine.
        shipped = ", ".join(sorted(path.name for path in (CHECKOUT / "profiles").iterdir()))
        raise ConfigError(f"--profile {profile}: there is no such folder, nor a profile of that name: {shipped}.")
    return ["--workflow-profile", str(folder)]


def resolve_arguments(study: str, config: str, trace: str, data: str, is_remote: bool = False) -> list[str]:
    """Return Snakemake's arguments for the study; is_remote: large traces are split into jobs of several machines.

    Raises ConfigError for options that exclude each other, and as `write_configuration`.
    """
    if study and (config or trace or data):
        raise ConfigError("--study names a study that was made; a new one takes its name from `name:` in --config.")
    if data and trace:
        raise ConfigError(f"{data}: give data alone or with --config, not with --trace.")
    if not _NAMES.fullmatch(trace):
        raise ConfigError(
            f"--trace {show(trace)}: expected names of traces (letters, digits, _ and -), a comma between two."
        )
    data = str(save_piped_data()) if data == "-" else data
    settings = [f"study=[{', '.join(list_samples()) if trace == 'all' else trace}]"] if trace else []
    if data and config:
        settings = [format_data_setting(Path(config), Path(data))]
    config_files = [config] if config else [write_configuration(Path(data))] if data else []
    if not (settings or config_files) and (name := studies.choose_study(study) if study else studies.find_last_study()):
        other_studies = [study_name for study_name in studies.list_studies() if study_name != name]
        hint = f"; --study for another: {', '.join(other_studies)}" if other_studies and not study else ""
        print(f"study {name}{'' if study else ', the most recent'}{hint}", file=sys.stderr)
        update_configuration(name)
        return studies.find_arguments(name)
    scatter = ["scatter={jobs: 16}"] if is_remote and trace else []
    return studies.format_arguments(config_files, [*settings, *scatter])


def save_piped_data() -> Path:
    """Save what is piped into this command as a file, in place of what was piped before, and return the file."""
    PIPED.parent.mkdir(parents=True, exist_ok=True)
    new_file = PIPED.with_suffix(".new")
    with new_file.open("wb") as target:
        shutil.copyfileobj(sys.stdin.buffer, target)
    if not new_file.stat().st_size:
        new_file.unlink()
        raise ConfigError("-: nothing was piped into the command. Did the one before it fail?")
    return new_file.replace(PIPED)


def format_data_setting(config: Path, data: Path) -> str:
    """Return the setting that the only trace of the configuration is read from this folder, or file of a table.

    It also names files of tables with a key of their own, such as units, that the folder holds.

    Raises ConfigError if there are other numbers of traces, or if the file is missing.
    """
    from ttf.study.recognition.recognise import find_keyed_files

    document = load_yaml(config, str(config))
    traces = document.get("study")
    if not isinstance(traces, list) or len(traces) != 1:
        raise ConfigError(f"{data}: --config {config} must name one trace, as in study: [mine].")
    if not data.exists():
        raise ConfigError(f"{data}: there is no such file or folder.")
    registry = document.get("registry")
    entry = registry.get(traces[0]) if isinstance(registry, dict) else None
    table = "record" if isinstance(entry, dict) and entry.get("format") == "sacct" else "rows"
    location = {"folder": str(data)} if data.is_dir() else {"folder": str(data.parent), "files": {table: data.name}}
    keyed_files = find_keyed_files(data, entry) if isinstance(entry, dict) else {}
    return f"registry={json.dumps({str(traces[0]): location | keyed_files})}"


def list_samples() -> list[str]:
    """Return the embedded samples of the registry."""
    return [name for name, entry in load_yaml(CHECKOUT / "config" / "traces.yaml").items() if "embedded" in entry]


def write_configuration(data: Path) -> str:
    """Write the configuration of a study of this data into its folder, unless it exists; return its path.

    Raises ConfigError for a draft that is not completed.
    """
    from ttf.study.recognition.recognise import (
        MOST_LINES,
        find_new_files,
        format_configuration,
        format_missing_keys,
        recognise,
    )

    recognised = recognise(data)
    file = studies.STUDIES / recognised.name / studies.DATA_CONFIG_NAME
    is_edited = studies.write_data_configuration(recognised.name, data, format_configuration(recognised))
    if not recognised.missing:
        print("\n".join(recognised.explanation.splitlines()[:MOST_LINES]), file=sys.stderr)
    if is_edited:
        new_files = find_new_files(recognised, load_yaml(file, str(file)))
        print("\n".join([f"{file} was edited, and is used as it stands.", *new_files]), file=sys.stderr)
    if recognised.missing and not is_edited:
        raise ConfigError(format_missing_keys(recognised, file, data))
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

    Waits while another run by `ttf` holds the lock. A killed run leaves Snakemake's own lock file behind; the kernel
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


def choose_plugins(options: Sequence[str], is_local: bool) -> list[str]:
    """Name the plugins that show progress and, for local jobs, fork the scripts; not in modes with own output."""
    other_modes = ("-n", "--dry-run", "--dryrun", "--lint", "--quiet", "-q", "--report", "--summary", "--verbose")
    if any(word.split("=")[0] in other_modes for word in options):
        return []
    return ["--logger", "progress", *(["--executor", "forks"] if is_local else [])]
