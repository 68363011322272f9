"""`make remove STUDY=name`, or `TRACE=name PART=name`: names what would go, and removes it with SURE=yes.

Of a study: its own folder, and the results of the traces that no other study has. Raw tables and configurations stay.
"""

from ttf.engine.process.stopping import run_apart

if __name__ == "__main__":
    run_apart()

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
    given = parser.parse_args()
    try:
        if given.trace and given.part:
            gone, what = (
                studies.find_part_files(given.trace, given.part),
                f"part {given.part} of the trace {given.trace}",
            )
        elif given.study:
            gone, what = studies.find_study_folders(studies.choose_study(given.study)), f"study {given.study}"
        else:
            raise ConfigError("what? make remove STUDY=name, or make remove TRACE=name PART=name")
        if not gone:
            raise ConfigError(f"nothing was made of the {what}.")
        if links := [path for path in gone if path.is_symlink()]:
            raise ConfigError(f"{links[0]} is a link: what it leads to is not removed. Remove the link first.")
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    verb = "removed" if given.sure == "yes" else "would be removed"
    print("\n".join(f"{verb}: {path}" for path in gone))
    if given.part and (raw := studies.find_raw_part_files(given.trace, given.part)):
        print(f"stays: {', '.join(map(str, raw))}. The next run reads it again, unless you take it out of there.")
    if given.sure != "yes":
        print(f"Nothing is removed yet. Add SURE=yes to remove the {what}.")
        return 0
    try:
        for path in gone:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        print(f"error: {error.filename}: cannot be removed ({error.strerror}).", file=sys.stderr)
        return 1
    if given.study:
        studies.forget_study(given.study)
    return 0


sys.exit(main())
