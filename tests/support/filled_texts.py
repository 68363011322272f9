"""Functions that write texts of the page, wrapped so that the numbers of their texts are filled in as on the page."""

from collections.abc import Callable
from functools import wraps
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from ttf.display.phrases import fill_slots
from ttf.display.trace_numbers import Numbers


def filled(part: Any) -> Any:
    """Return a function whose texts are filled in, or a module with such functions."""
    if isinstance(part, ModuleType):
        return SimpleNamespace(**{name: _fill_function(value) for name, value in vars(part).items()})
    return _fill_function(part)


def _fill_function(value: Any) -> Any:
    return _fill(value) if isinstance(value, FunctionType) else value


def _fill(function: Callable) -> Callable:
    @wraps(function)
    def fill(*args, **kwargs):
        content = function(*args, **kwargs)
        m = next((arg for arg in (*args, *kwargs.values()) if isinstance(arg, Numbers)), None)
        return content if m is None else fill_slots(content, m)

    return fill
