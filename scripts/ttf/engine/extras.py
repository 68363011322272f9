"""Packages that only some commands need: extras of the distribution."""

from importlib.util import find_spec

from ttf.engine.errors import StudyError

# Extra -> its package.
EXTRAS = {"pdf": "typst"}


def require_extra(extra: str) -> None:
    """Raise StudyError with the remedy if the package of an extra is not installed."""
    if find_spec(EXTRAS[extra]) is None:
        raise StudyError(f"{EXTRAS[extra]} is not installed. Type: pip install 'time-to-failure[{extra}]'")
