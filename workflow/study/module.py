"""The study as a module of another workflow (docs/module.md): its configuration and the names of its rules."""

from collections.abc import Callable
from typing import Any

from study.messages import ConfigError

OF_MODULE = "config: of the module"


def in_module(workflow: Any) -> bool:
    """Whether another workflow uses this one; then what was typed at its start is for that one."""
    modifier = getattr(workflow, "modifier", None)
    return modifier is not None and not modifier.is_main_snakefile()


def refuse_prefix(modifier: Any) -> None:
    """Raises ConfigError where the other workflow puts a prefix before paths: products are named in many places."""
    paths = [f"{folder}/any" for folder in ("results", "logs", "benchmarks", "data")]
    if any(modifier.path_modifier.replace_prefix(path) != path for path in paths):
        raise ConfigError(
            "prefix: this workflow writes to results/, logs/ and benchmarks/ of the folder where it is started; to "
            "have them elsewhere, give Snakemake --directory, or the module a `name:` in its config."
        )


def own_name_of(modifier: Any) -> Callable[[str], str]:
    """Rule of the whole workflow -> what it is called here, without what `use rule * as ...` puts around its name."""
    before, after = modifier.modify_rulename("*").split("*")
    return lambda name: name.removeprefix(before).removesuffix(after)
