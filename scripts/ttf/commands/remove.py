"""`ttf remove`: list the files that only a study, or a part of a trace, has, and remove them if that is confirmed.

Removes a study's folder and the results of traces that no other study has. Raw tables and configurations stay.
"""

import shutil

from ttf.commands.error_ending import with_error_ending
from ttf.study import studies
from ttf.study.configuration.messages import ConfigError


@with_error_ending(1)
def remove(study: str, trace: str, part: str, is_sure: bool) -> int:
    """Print the files and, if that `is_sure`, remove them; return the exit status."""
    if trace and part:
        paths, label = studies.find_part_files(trace, part), f"part {part} of the trace {trace}"
    elif study:
        paths, label = studies.find_study_folders(studies.choose_study(study)), f"study {study}"
    else:
        raise ConfigError("what? ttf remove --study name, or ttf remove --trace name --part name")
    if not paths:
        raise ConfigError(f"nothing was made of the {label}.")
    if links := [path for path in paths if path.is_symlink()]:
        raise ConfigError(f"{links[0]} is a link: what it leads to is not removed. Remove the link first.")
    verb = "removed" if is_sure else "would be removed"
    print("\n".join(f"{verb}: {path}" for path in paths))
    if part and (raw := studies.find_raw_part_files(trace, part)):
        print(f"stays: {', '.join(map(str, raw))}. The next run reads it again, unless you take it out of there.")
    if not is_sure:
        print(f"Nothing is removed yet. Add --yes to remove the {label}.")
        return 0
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if study:
        studies.forget_study(study)
    return 0
