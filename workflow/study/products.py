"""The products of jobs as lists of lists of paths: what a run is asked for so that it makes all of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def paths_in(nested: str | Iterable) -> list[str]:
    """The paths of lists of lists of paths, each once."""
    if isinstance(nested, str):
        return [nested]
    return list(dict.fromkeys(path for part in nested for path in paths_in(part)))


def one_of_each(jobs: Iterable[Sequence[str]]) -> list[str]:
    """A product of each job, which stands for all of them: Snakemake looks up each file that it is asked for."""
    return list(dict.fromkeys(products[0] for products in jobs))


def deleted_of(jobs: Iterable[Sequence[str]]) -> list[str]:
    """What somebody deleted of the products of jobs whose first is there: that one stands for them no longer."""
    return [path for first, *others in jobs if Path(first).exists() for path in others if not Path(path).exists()]


def asked_of(jobs: Sequence[Sequence[str]], stored: bool) -> list[str]:
    """What asks for all products of these jobs: one of each, and the others of a job that somebody deleted.

    stored: products lie in a store, where nobody looks for what is gone.
    """
    return paths_in(jobs) if stored else one_of_each(jobs) + deleted_of(jobs)
