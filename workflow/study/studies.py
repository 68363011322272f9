"""The studies of a folder: what each was made of, which was made last, and what they share.

What belongs to a study lies in results/studies/<name>/, what belongs to a trace in results/<trace>/, where every study
that has the trace uses it.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from study.documents import dotted, flow, mean
from study.messages import ConfigError, show
from study.yaml_files import load_yaml

STUDIES = Path("results/studies")
# What was typed for each study, so that it can be made again by its name; nothing that a product depends on.
MEMORY = Path(".snakemake/ttf/studies.json")
# The configuration that a study of a folder of data was made with.
OF_DATA = "study.yaml"
# No table or chart of a trace depends on these.
_OF_THE_STUDY = ("study", "name", "registry", "claims", "publish", "scatter")
_OF_THE_PAGE = ("title", "note", "source", "licence", "citation")


def made() -> dict[str, dict]:
    """Name -> the resolved configuration of each study that was made in this folder, by name.

    Raises ConfigError for one that somebody has made unreadable.
    """
    files = sorted(STUDIES.glob("*/config.yaml"))
    read = {file.parent.name: load_yaml(file, str(file)) for file in files}
    return {name: config for name, config in read.items() if config.keys() >= {"study", "registry"}}


def check_shared(config: Mapping, others: Mapping[str, Mapping]) -> None:
    """Raises ConfigError where another study gives a trace of this one other sources or settings."""
    problems = []
    for name, other in others.items():
        if name == config["name"] or not (shared := [trace for trace in config["study"] if trace in other["study"]]):
            continue
        settings = [key for key in config if key in other and key not in _OF_THE_STUDY]
        differ = [line for key in settings for line in _differences(config[key], other[key], (key,), strict=False)]
        for trace in shared:
            here, there = (
                {key: value for key, value in of["registry"][trace].items() if key not in _OF_THE_PAGE}
                for of in (config, other)
            )
            differ += _differences(here, there, ("registry", trace), strict=True)
        if differ:
            said = "; ".join(differ)
            problems.append(
                f"{', '.join(shared)}: also in the study {name}, which has other settings: {said}. The results of a "
                "trace are shared by all studies that have it. Write the same in both, give the trace another name "
                f"in the registry for one of them, or remove that study: make remove STUDY={name}"
            )
    if problems:
        raise ConfigError("\n".join(problems))


def _differences(here: Any, there: Any, path: tuple[str, ...], strict: bool) -> Iterator[str]:
    """What differs, key by key. strict: also a key that one of them lacks; else one may be of another version."""
    if isinstance(here, dict) and isinstance(there, dict):
        for key in dict.fromkeys([*here, *there]):
            if key in here and key in there:
                yield from _differences(here[key], there[key], (*path, key), strict)
            elif strict:
                mine, theirs = (flow(of[key]) if key in of else "nothing" for of in (here, there))
                yield f"{dotted((*path, key))} is {mine} here and {theirs} there"
    elif here != there:
        yield f"{dotted(path)} is {flow(here)} here and {flow(there)} there"


def replaced(config: Mapping, others: Mapping[str, Mapping]) -> str:
    """What to say where a study of other traces was made under the same name; nothing where none was."""
    before = others.get(config["name"], config)["study"]
    if set(before) == set(config["study"]):
        return ""
    return (
        f"note: the study {config['name']} had the traces {', '.join(before)}, and has now "
        f"{', '.join(config['study'])}. To keep both, give one of them a name of its own: `name:` in its configuration."
    )


# What was typed -----------------------------------------------------------------------------------------------


def arguments(files: Iterable[str], words: Iterable[str]) -> list[str]:
    """Snakemake's arguments for these files of configuration and these overrides; -n.yaml is a file, not an option."""
    files = [f"./{file}" if file.startswith("-") else file for file in files]
    return [*(["--configfile", *files] if files else []), *(["--config", *words] if words else [])]


def remember(name: str, settings: Any) -> None:
    """Keep what was typed for a study, Snakemake's settings of its configuration: it is the study made last."""
    # Snakemake has them in full.
    files = [
        os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else str(file) for file in settings.configfiles
    ]
    words = [str(word) for word in settings.config_args or []]
    memory = _memory()
    kept = {"last": name, "typed": memory["typed"] | {name: arguments(files, words)}}
    if kept != memory:
        _keep(kept)


def forget(name: str) -> None:
    memory = _memory()
    typed = {other: words for other, words in memory["typed"].items() if other != name}
    _keep({"last": memory["last"] if memory["last"] in typed else None, "typed": typed})


def _keep(memory: Mapping[str, Any]) -> None:
    MEMORY.parent.mkdir(parents=True, exist_ok=True)
    unfinished = MEMORY.with_suffix(".new")
    unfinished.write_text(json.dumps(memory, indent=1), encoding="utf-8")
    unfinished.replace(MEMORY)


def _memory() -> dict[str, Any]:
    try:
        return json.loads(MEMORY.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"last": None, "typed": {}}


def last() -> str | None:
    """The study made last in this folder; of a folder without memory, the only one there."""
    there = names()
    remembered = _memory()["last"]
    return remembered if remembered in there else there[0] if len(there) == 1 else None


def names() -> list[str]:
    """The studies that have a folder here, finished or not."""
    return sorted(path.name for path in STUDIES.glob("*") if path.is_dir())


def chosen(name: str | None) -> str:
    """The study of this name, or the one made last. Raises ConfigError where there is none."""
    there = names()
    if not there:
        raise ConfigError("no study was made in this folder yet. Run `make report`.")
    if name and name not in there:
        raise ConfigError(f"STUDY={name}: there is no such study here{mean(name, there)} Made: {', '.join(there)}.")
    if not (name := name or last()):
        raise ConfigError(f"which study? Name it: STUDY={' or STUDY='.join(there)}")
    return name


def typed_for(name: str) -> list[str]:
    """Snakemake's arguments that make a study again: those typed, while their files are there, else as it was made."""
    typed = _memory()["typed"].get(name)
    files = typed[1 : typed.index("--config") if "--config" in typed else None] if typed else []
    if typed is not None and (typed[:1] != ["--configfile"] or all(Path(file).is_file() for file in files)):
        return typed
    kept = [file for file in (STUDIES / name / OF_DATA, STUDIES / name / "config.yaml") if file.is_file()]
    if not kept:
        raise ConfigError(
            f"STUDY={name}: it was never finished, and what was typed for it is not known. Type it again."
        )
    return ["--configfile", str(kept[0])]


# Removing -----------------------------------------------------------------------------------------------------


def of_study(name: str) -> list[Path]:
    """The folders that only this study has: its own, and those of traces that no other study has."""
    studies = made()
    elsewhere = {trace for other, config in studies.items() if other != name for trace in config["study"]}
    traces = [trace for trace in studies.get(name, {"study": []})["study"] if trace not in elsewhere]
    return list(_there([f"{STUDIES.name}/{name}", *traces]))


def of_part(trace: str, part: str) -> list[Path]:
    """What was made of one part of a trace alone. Raises ConfigError for what is no name: it would lead elsewhere."""
    for name in (trace, part):
        if name in ("", ".", "..") or Path(name).name != name:
            raise ConfigError(f"{show(name)} is no name of a trace or a part.")
    logs = [Path(kind) / trace / "ingest_part" / f"{part}.{ending}" for kind, ending in _LOGS.items()]
    return [path for path in [Path("results") / trace / "parts" / part, *logs] if path.exists()]


def raw_of_part(trace: str, part: str) -> list[Path]:
    """The raw files of a part, or its folder, that lie where the studies of the trace read them."""
    paths = {Path("data") / trace / part}
    for entry in (config["registry"].get(trace, {}) for config in made().values()):
        for value in entry.values():
            texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
            paths |= {Path(text) for text in texts if Path(text).name == part}
        if isinstance(entry.get("folder"), str):
            paths.add(Path(entry["folder"]) / part)
    return sorted(path for path in paths if path.exists())


_LOGS = {"logs": "log", "benchmarks": "tsv"}


def _there(places: Iterable[str]) -> Iterator[Path]:
    for place in places:
        yield from (path for kind in ("results", *_LOGS) if (path := Path(kind) / place).exists())
