"""Check the configuration before Snakemake reads it.

Snakemake reads the files of --configfile before the Snakefile. For an unreadable file it shows a traceback, or neither
file nor line; a few lines of aliases, or a pipe, block it forever; it runs code in a template. `ttf` runs this first.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ttf.study.configuration.messages import ConfigError


def read_typed_layers(files: Iterable[str | Path], words: Iterable[str]) -> list[tuple[str, Any]]:
    """Return the layers that were typed: files of --configfile, and the words of --config.

    Raises ConfigError with file, line and column for unreadable content. `Study` checks keys and values.
    """
    from ttf.study.configuration.config import OVERRIDES, parse_overrides, read_layer

    layers: list[tuple[str, Any]] = [(str(file), read_layer(file, for_snakemake=True)) for file in files]
    return [*layers, *([(OVERRIDES, overrides)] if (overrides := parse_overrides(words)) else [])]


def check_typed_layers(arguments: Sequence[str]) -> None:
    """Check the configuration in Snakemake's arguments; an error is printed and ends the process with exit status 1."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", nargs="+", default=[])
    parser.add_argument("--config", nargs="*", default=[])
    options, _ = parser.parse_known_args(arguments)
    try:
        read_typed_layers(options.configfile, options.config)
    except ConfigError as error:
        print(f"error in the configuration\n{error}", file=sys.stderr)
        sys.exit(1)
