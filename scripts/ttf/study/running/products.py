"""Products of jobs as lists of lists of paths, and the targets that make all of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def flatten_paths(nested: str | Iterable) -> list[str]:
    if isinstance(nested, str):
        return [nested]
    return list(dict.fromkeys(path for item in nested for path in flatten_paths(item)))


def select_first_products(jobs: Iterable[Sequence[str]]) -> list[str]:
    """Return one product of each job, which stands for the others, as Snakemake looks up every target."""
    return list(dict.fromkeys(products[0] for products in jobs))


def find_deleted_products(jobs: Iterable[Sequence[str]]) -> list[str]:
    """Return the deleted products of jobs whose first product exists, as that one no longer stands for them."""
    return [path for first, *rest in jobs if Path(first).exists() for path in rest if not Path(path).exists()]


def select_targets(jobs: Sequence[Sequence[str]], stored: bool) -> list[str]:
    """Return the targets that request all products: one per job, and the deleted ones.

    stored: products lie in a store, which is not searched for deleted products.
    """
    return flatten_paths(jobs) if stored else select_first_products(jobs) + find_deleted_products(jobs)
