"""The studies of a folder: their configurations, the most recent one, and what they share.

A study's own products lie in results/studies/<name>/. Products of a trace lie in results/<trace>/, which all studies of
the trace share.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ttf.engine.storage.plain_files import make_relative, replace_file
from ttf.study.configuration.documents import format_key_path, suggest_match, to_inline_yaml
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml, parse_yaml

STUDIES = Path("results/studies")
# The arguments typed for each study, to make it again by name. No product depends on this file.
MEMORY = Path(".snakemake/ttf/studies.json")
# The configuration of a study that was made from a folder of data.
DATA_CONFIG_NAME = "study.yaml"
# Keys on which no table or chart of a trace depends.
_STUDY_KEYS = ("study", "name", "registry", "claims", "publish", "scatter")
_PAGE_KEYS = ("title", "note", "source", "licence", "citation")


def read_studies() -> dict[str, dict]:
    """Map each study made in this folder to its resolved configuration; raise ConfigError if one is unreadable."""
    config_by_name = {file.parent.name: load_yaml(file, str(file)) for file in sorted(STUDIES.glob("*/config.yaml"))}
    return {name: config for name, config in config_by_name.items() if config.keys() >= {"study", "registry"}}


def check_shared(config: Mapping, other_studies: Mapping[str, Mapping]) -> None:
    """Raise ConfigError if another study gives a shared trace other sources or settings."""
    problems = []
    for name, other in other_studies.items():
        if name == config["name"] or not (shared := [trace for trace in config["study"] if trace in other["study"]]):
            continue
        settings = [key for key in config if key in other and key not in _STUDY_KEYS]
        differences = [
            line for key in settings for line in _find_differences(config[key], other[key], (key,), strict=False)
        ]
        for trace in shared:
            own_entry, other_entry = (
                {key: value for key, value in source["registry"][trace].items() if key not in _PAGE_KEYS}
                for source in (config, other)
            )
            differences += _find_differences(own_entry, other_entry, ("registry", trace), strict=True)
        if differences:
            problems.append(
                f"{', '.join(shared)}: also in the study {name}, which has other settings: {'; '.join(differences)}. "
                "All studies of a trace share its results. Use the same settings in both, give the trace another name "
                f"in the registry for one of them, or remove that study: ttf remove --study {name}"
            )
    if problems:
        raise ConfigError("\n".join(problems))


def _find_differences(value: Any, other_value: Any, path: tuple[str, ...], strict: bool) -> Iterator[str]:
    """Yield what differs, key by key. strict: also keys that one side lacks; else it may be of another version."""
    if isinstance(value, dict) and isinstance(other_value, dict):
        for key in dict.fromkeys([*value, *other_value]):
            if key in value and key in other_value:
                yield from _find_differences(value[key], other_value[key], (*path, key), strict)
            elif strict:
                text, other = (to_inline_yaml(side[key]) if key in side else "nothing" for side in (value, other_value))
                yield f"{format_key_path((*path, key))} is {text} here and {other} there"
    elif value != other_value:
        yield f"{format_key_path(path)} is {to_inline_yaml(value)} here and {to_inline_yaml(other_value)} there"


def describe_replacement(config: Mapping, other_studies: Mapping[str, Mapping]) -> str:
    """Return a note if a study of the same name had other traces, else an empty text."""
    earlier_traces = other_studies.get(config["name"], config)["study"]
    if set(earlier_traces) == set(config["study"]):
        return ""
    return (
        f"note: the study {config['name']} had the traces {', '.join(earlier_traces)}, and has now "
        f"{', '.join(config['study'])}. To keep both, give one of them another name: `name:` in its configuration."
    )


# Typed arguments ----------------------------------------------------------------------------------------------


def format_arguments(files: Iterable[str], words: Iterable[str]) -> list[str]:
    """Return Snakemake's arguments for these configuration files and overrides; -n.yaml is a file, not an option."""
    files = [f"./{file}" if file.startswith("-") else file for file in files]
    return [*(["--configfile", *files] if files else []), *(["--config", *words] if words else [])]


def remember_study(name: str, settings: Any) -> None:
    """Store the arguments of a study as the most recent one. settings: Snakemake's settings of its configuration."""
    # Snakemake stores full paths.
    files = [make_relative(file) for file in settings.configfiles]
    words = [str(word) for word in settings.config_args or []]
    memory = _read_memory()
    new_memory = memory | {"last": name, "typed": memory["typed"] | {name: format_arguments(files, words)}}
    if new_memory != memory:
        _write_memory(new_memory)


def forget_study(name: str) -> None:
    memory = _read_memory()
    typed, written = (
        {study: value for study, value in memory[key].items() if study != name} for key in ("typed", "written")
    )
    last = memory["last"] if memory["last"] in typed else None
    _write_memory({"last": last, "typed": typed, "written": written})


def write_data_configuration(name: str, data: Path, text: str) -> bool:
    """Write the configuration of a study of `data`, unless a person has edited it; return whether one has."""
    file, memory = STUDIES / name / DATA_CONFIG_NAME, _read_memory()
    if file.exists():
        existing = file.read_text(encoding="utf-8")
        is_ours = memory["written"].get(name, {}).get("sha256") == _digest(existing)
        if not is_ours and existing != text:
            return load_yaml(file, str(file)) != parse_yaml(text, str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, text)
    _write_memory(memory | {"written": memory["written"] | {name: {"data": str(data), "sha256": _digest(text)}}})
    return False


def find_data(name: str) -> Path | None:
    """Return the data from which the study was configured; None for a study with a configuration of its own."""
    written = _read_memory()["written"].get(name)
    return Path(written["data"]) if written else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _write_memory(memory: Mapping[str, Any]) -> None:
    MEMORY.parent.mkdir(parents=True, exist_ok=True)
    replace_file(MEMORY, json.dumps(memory, indent=1))


def _read_memory() -> dict[str, Any]:
    """Return the last study, the arguments that were typed for each, and the configurations written from data."""
    memory: dict[str, Any] = {"last": None, "typed": {}, "written": {}}
    try:
        return memory | json.loads(MEMORY.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return memory


def find_last_study() -> str | None:
    """Return the most recent study in this folder; without memory the only study, else None."""
    studies = list_studies()
    last_name = _read_memory()["last"]
    return last_name if last_name in studies else studies[0] if len(studies) == 1 else None


def list_studies() -> list[str]:
    return sorted(path.name for path in STUDIES.glob("*") if path.is_dir())


def choose_study(name: str | None) -> str:
    """Return the study of this name, or the most recent one. Raises ConfigError if there is none."""
    studies = list_studies()
    if not studies:
        raise ConfigError("this folder has no study yet. Run `ttf report`.")
    if name and name not in studies:
        match = suggest_match(name, studies)
        raise ConfigError(f"--study {name}: there is no such study here{match} Made: {', '.join(studies)}.")
    if not (name := name or find_last_study()):
        raise ConfigError(f"several studies; choose one: --study {' or --study '.join(studies)}")
    return name


def find_arguments(name: str) -> list[str]:
    """Return Snakemake's arguments that make a study again: those typed, or its saved configuration."""
    arguments = _read_memory()["typed"].get(name)
    files = arguments[1 : arguments.index("--config") if "--config" in arguments else None] if arguments else []
    if arguments is not None and (arguments[:1] != ["--configfile"] or all(Path(file).is_file() for file in files)):
        return arguments
    files = [file for file in (STUDIES / name / DATA_CONFIG_NAME, STUDIES / name / "config.yaml") if file.is_file()]
    if not files:
        raise ConfigError(f"--study {name}: it is unfinished, and its arguments are unknown. Type the command again.")
    return ["--configfile", str(files[0])]


# Removing -----------------------------------------------------------------------------------------------------


def find_study_folders(name: str) -> list[Path]:
    """Return the folders that only this study uses: its own, and those of traces in no other study."""
    studies = read_studies()
    shared = {trace for study, config in studies.items() if study != name for trace in config["study"]}
    traces = [trace for trace in studies.get(name, {"study": []})["study"] if trace not in shared]
    subfolders = (f"{STUDIES.name}/{name}", *traces)
    folders = [Path(kind) / subfolder for subfolder in subfolders for kind in ("results", "logs", "benchmarks")]
    return [folder for folder in folders if folder.exists()]
