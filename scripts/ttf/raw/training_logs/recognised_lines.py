"""Recognise the log of a training run by its first lines. Plain Python, so that planning can ask."""

import re
from functools import cache

import yaml

from ttf.engine.checkout import CHECKOUT
from ttf.raw.node_logs.layouts import decode_head, split_csv_line
from ttf.raw.training_logs.profiles import Profiles

# A line that could be of anything needs a second one of the same framework.
LEAST_LINES = 2
# Column of a CSV file of steps -> what it is, in small letters: exports of W&B and TensorBoard, and their like.
STEP_COLUMNS = ("_step", "step", "global_step", "trainer/global_step", "iteration")
TIME_COLUMNS = ("_timestamp", "wall time", "wall_time", "timestamp", "time", "created_at")
ELAPSED_COLUMNS = ("_runtime", "relative time (process)", "relative time (wall)", "elapsed")


def is_training_log(head: bytes) -> bool:
    """Return whether the lines of a file that starts with these bytes are those of a framework, or rows of steps."""
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;]*m", "", decode_head(head)))
    if parse_step_header(lines[0]):
        return True
    return any(sum(1 for line in lines if pattern.search(line)) >= LEAST_LINES for pattern in _compile_profiles())


def parse_step_header(line: str) -> list[str] | None:
    """Return the names in the header of a CSV file with a row per step, in small letters; None for any other line."""
    names = [name.strip().lower() for name in split_csv_line(line)]
    has_time = {*names} & {*TIME_COLUMNS, *ELAPSED_COLUMNS}
    return names if len(names) > 1 and has_time and {*names} & {*STEP_COLUMNS} else None


@cache
def _compile_profiles() -> list[re.Pattern]:
    """Return a pattern per shipped profile."""
    text = (CHECKOUT / "config" / "training_log_profiles.yaml").read_text(encoding="utf-8")
    profiles = Profiles.from_options({"profiles": yaml.safe_load(text)["profiles"]})
    return [re.compile(profile.any_regex) for profile in profiles if profile.patterns]
