"""The command `ttf`, also `python -m ttf`."""

import sys

from ttf.engine.process.stopping import run_in_child


def main() -> None:
    """Read what was typed and do it, in a process that ends with one sentence on a request to stop."""
    # First of all, because the imports of a command take a second.
    run_in_child(remote=any(word.startswith("--profile") for word in sys.argv))
    from ttf.commands.command_line import ttf

    for stream in (sys.stdout, sys.stderr):  # a name may have letters that the terminal lacks
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    ttf(prog_name="ttf")


if __name__ == "__main__":
    main()
