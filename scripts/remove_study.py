"""`make remove STUDY=name`, or `TRACE=name PART=name`: list the files to remove, and remove them with SURE=yes.

Removes a study's folder and the results of traces that no other study has. Raw tables and configurations stay.
"""

from ttf.engine.process.stopping import run_in_child

if __name__ == "__main__":
    run_in_child()

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

from study import studies
from study.messages import ConfigError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("study", "trace", "part", "sure"):
        parser.add_argument(f"--{name}", default="")
    options = parser.parse_args()
    try:
        if options.trace and options.part:
            paths = studies.find_part_files(options.trace, options.part)
            label = f"part {options.part} of the trace {options.trace}"
        elif options.study:
            paths, label = studies.find_study_folders(studies.choose_study(options.study)), f"study {options.study}"
        else:
            raise ConfigError("what? make remove STUDY=name, or make remove TRACE=name PART=name")
        if not paths:
            raise ConfigError(f"nothing was made of the {label}.")
        if links := [path for path in paths if path.is_symlink()]:
            raise ConfigError(f"{links[0]} is a link: what it leads to is not removed. Remove the link first.")
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    verb = "removed" if options.sure == "yes" else "would be removed"
    print("\n".join(f"{verb}: {path}" for path in paths))
    if options.part and (raw := studies.find_raw_part_files(options.trace, options.part)):
        print(f"stays: {', '.join(map(str, raw))}. The next run reads it again, unless you take it out of there.")
    if options.sure != "yes":
        print(f"Nothing is removed yet. Add SURE=yes to remove the {label}.")
        return 0
    try:
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        print(f"error: {error.filename}: cannot be removed ({error.strerror}).", file=sys.stderr)
        return 1
    if options.study:
        studies.forget_study(options.study)
    return 0


sys.exit(main())
