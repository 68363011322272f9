"""The one way in which a command ends that cannot do what was typed."""

import sys
from collections.abc import Callable
from functools import wraps

# Only what `ttf verify` of a received folder can import: Python's standard library and these.
from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal


def with_error_ending(status: int) -> Callable:
    """Return a decorator: print a StudyError or OSError as one line on standard error, and return the exit status."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def run(*arguments: object, **options: object) -> int:
            try:
                return command(*arguments, **options)
            except StudyError as error:
                message = str(error)
            except OSError as error:
                message = f"{seal.show_path(str(error.filename or 'a file'))}: cannot be used: {error.strerror}."
            print(f"error: {message}", file=sys.stderr)
            return status

        return run

    return decorate
