"""The configuration, read before Snakemake reads it.

Snakemake reads the files of --configfile before it comes to the Snakefile. Of one that it cannot read it shows a
traceback, or neither file nor line; a few lines of aliases, or a pipe, hold it up for ever; code in a template is run.
`make` comes here first.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from study.messages import ConfigError
from study.named_files import folder_problem


def check(files: Iterable[str | Path], words: Iterable[str]) -> list[tuple[str, Any]]:
    """The layers that were typed: files of --configfile, and the words of --config.

    Raises ConfigError, with file, line and column, for what cannot be read; that keys and values are right is for
    `Study`, which knows the formats.
    """
    from study.config import OVERRIDES, read_layer, read_words

    layers: list[tuple[str, Any]] = [(str(file), read_layer(file, for_snakemake=True)) for file in files]
    return [*layers, *([(OVERRIDES, overrides)] if (overrides := read_words(words)) else [])]


def check_typed(arguments: Sequence[str]) -> None:
    """The same of Snakemake's command line; what is wrong is printed, and ends the process with exit code 1."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=[])
    parser.add_argument("--config", "-C", nargs="*", default=[])
    parser.add_argument("--workflow-profile", default="none")
    typed, _ = parser.parse_known_args(arguments)
    profile = Path(typed.workflow_profile)
    try:
        if profile != Path("none") and all(folder_problem(place) for place in (profile, "profiles" / profile)):
            # Snakemake would go on without it, on this machine.
            raise ConfigError(f"profile {profile}: there is no such folder, neither here nor in profiles/.")
        check(typed.configfile, typed.config)
    except ConfigError as error:
        print(f"error in the configuration\n{error}", file=sys.stderr)
        sys.exit(1)
