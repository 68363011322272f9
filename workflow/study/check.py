"""Check the configuration before Snakemake reads it.

Snakemake reads the files of --configfile before the Snakefile. For an unreadable file it shows a traceback, or neither
file nor line; a few lines of aliases, or a pipe, block it forever; it runs code in a template. `make` runs this first.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from study.messages import ConfigError
from study.named_files import folder_problem


def read_typed_layers(files: Iterable[str | Path], words: Iterable[str]) -> list[tuple[str, Any]]:
    """Return the layers that were typed: files of --configfile, and the words of --config.

    Raises ConfigError with file, line and column for unreadable content. `Study` checks keys and values.
    """
    from study.config import OVERRIDES, parse_overrides, read_layer

    layers: list[tuple[str, Any]] = [(str(file), read_layer(file, for_snakemake=True)) for file in files]
    return [*layers, *([(OVERRIDES, overrides)] if (overrides := parse_overrides(words)) else [])]


def check_arguments(arguments: Sequence[str]) -> None:
    """Check the configuration in Snakemake's arguments; an error is printed and ends the process with exit code 1."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", default=[])
    parser.add_argument("--config", "-C", nargs="*", default=[])
    parser.add_argument("--workflow-profile", default="none")
    options, _ = parser.parse_known_args(arguments)
    profile = Path(options.workflow_profile)
    try:
        if profile != Path("none") and all(folder_problem(folder) for folder in (profile, "profiles" / profile)):
            # Without the profile, Snakemake would run the jobs on this machine.
            raise ConfigError(f"profile {profile}: there is no such folder, neither here nor in profiles/.")
        read_typed_layers(options.configfile, options.config)
    except ConfigError as error:
        print(f"error in the configuration\n{error}", file=sys.stderr)
        sys.exit(1)
