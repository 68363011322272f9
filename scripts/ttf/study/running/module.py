"""The study as a module of another workflow (docs/module.md): its configuration and its rule names."""

from collections.abc import Callable
from typing import Any

from ttf.study.configuration.messages import ConfigError

MODULE_LABEL = "config: of the module"


def is_used_as_module(workflow: Any) -> bool:
    """Return whether another workflow uses this one; then the command line belongs to that workflow."""
    modifier = getattr(workflow, "modifier", None)
    return modifier is not None and not modifier.is_main_snakefile()


def refuse_prefix(modifier: Any) -> None:
    """Raise ConfigError if the other workflow adds a prefix to paths, as many places name products."""
    paths = [f"{folder}/any" for folder in ("results", "logs", "benchmarks", "data")]
    if any(modifier.path_modifier.replace_prefix(path) != path for path in paths):
        raise ConfigError(
            "prefix: this workflow writes to results/, logs/ and benchmarks/ of the current folder. To write "
            "elsewhere, give Snakemake --directory, or the module a `name:` in its config."
        )


def build_rule_namer(modifier: Any) -> Callable[[str], str]:
    """Return a function that removes the affixes of `use rule * as ...` from a rule's name."""
    prefix, suffix = modifier.modify_rulename("*").split("*")
    return lambda name: name.removeprefix(prefix).removesuffix(suffix)
