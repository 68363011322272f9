"""`ttf remove`: list the folders that only a study has, and remove them if that is confirmed.

Removes a study's folder and the results of traces that no other study has. Raw tables and configurations stay.
"""

import shutil

from ttf.commands.error_ending import with_error_ending
from ttf.study import studies
from ttf.study.configuration.messages import ConfigError


@with_error_ending(1)
def remove(study: str, is_sure: bool) -> int:
    """Print the folders and, if that `is_sure`, remove them; return the exit status."""
    if not study:  # an empty variable of a shell
        raise ConfigError("which study? ttf remove --study name")
    paths = studies.find_study_folders(studies.choose_study(study))
    if links := [path for path in paths if path.is_symlink()]:
        raise ConfigError(f"{links[0]} is a link: what it leads to is not removed. Remove the link first.")
    verb = "removed" if is_sure else "would be removed"
    print("\n".join(f"{verb}: {path}" for path in paths))
    if not is_sure:
        print(f"Nothing is removed yet. Add --yes to remove the study {study}.")
        return 0
    for path in paths:
        shutil.rmtree(path)
    studies.forget_study(study)
    return 0
