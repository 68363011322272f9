"""`make report`, `make pdf` and the like: which study it is for, and Snakemake started for it.

STUDY names a study that was made; CONFIG, TRACE and DATA say what one is made of; of none of them it is the study made
last, and in a new folder that of config/config.yaml. What follows goes to Snakemake.
"""

from ttf.stopping import end_at_once, no_more, stop_on_request

if __name__ == "__main__":
    stop_on_request()

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "workflow"))

from study import studies
from study.check import check_typed
from study.disk import check_writable, use_a_cache_of_ones_own
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
    if not words and not files and (name := studies.chosen(study) if study else studies.last()):
        others = [other for other in studies.names() if other != name]
        more = f"; STUDY=name for another: {', '.join(others)}" if others and not study else ""
        print(f"study {name}{'' if study else ', made last'}{more}", file=sys.stderr)
        return studies.typed_for(name)
    return studies.arguments(files, [*words, *([scatter] if scatter else [])])


def samples() -> list[str]:
    """The embedded samples of the registry."""
    return [name for name, entry in load_yaml(CHECKOUT / "config" / "traces.yaml").items() if "embedded" in entry]


def written_for(data: Path) -> str:
    """The configuration of a study of this data, in the folder of the study; one that is there already is kept."""
    from study.recognise import configuration_text, recognise

    found = recognise(data)
    file = studies.STUDIES / found.name / studies.OF_DATA
    text = configuration_text(found)
    print(found.why, file=sys.stderr)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    elif load_yaml(file, str(file)) != parse_yaml(text, str(file)):
        print(f"{file} was edited, and is used as it stands.", file=sys.stderr)
    print(f"study {found.name}; its configuration, to be kept and edited: {file}", file=sys.stderr)
    return str(file)


def spare_imports(arguments: Sequence[str]) -> None:
    """Have Snakemake do without what it would import, at each start, for its own report alone, and for configurations
    with arrays of NumPy, of which there are none: together a sixth of a start with nothing to do."""
    if not any(word.startswith("--report") for word in arguments):
        sys.modules.setdefault("snakemake.report", None)
    sys.modules.setdefault("numpy", None)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("study", "config", "trace", "data", "scatter"):
        parser.add_argument(f"--{name}", default="")
    given, rest = parser.parse_known_args(arguments)
    try:
        check_writable()
        use_a_cache_of_ones_own()
        words = typed(**vars(given))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    sys.argv[1:] = [*words, *rest]  # which the profile reads too
    check_typed(sys.argv[1:])
    spare_imports(sys.argv)
    # In this process: it is the one that is asked to stop, from its first line on.
    from snakemake.cli import main as snakemake

    code = None
    try:
        snakemake(sys.argv[1:])
    except SystemExit as end:
        code = end.code
    finally:
        no_more()
    end_at_once(code)


if __name__ == "__main__":
    main(sys.argv[1:])
