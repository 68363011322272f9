"""Made-up numbers for tests of the brief: a Slurm cluster with every number present."""

from pathlib import Path

import yaml
from ttf.display.phrases import strip_markup
from ttf.display.trace_numbers import Numbers
from ttf.engine.columns import GAP

ABOUT = {
    "unit": "job",
    "subject": "job",
    "gives": "jobs",
    "clock": "UTC",
    "failure_words": ["FAILED", "TIMEOUT"],
    "targets": {},
}
COMPONENTS = ABOUT | {"unit": "node", "subject": GAP, "gives": "durations", "failure_words": []}

JOBS = yaml.safe_load((Path(__file__).parents[1] / "fixtures/numbers.yaml").read_text(encoding="utf-8"))


def plain(text: str) -> str:
    return strip_markup(text).replace("\u00a0", " ")


def numbers(*omitted: str, **changes) -> Numbers:
    """Return JOBS without some keys and with changed values (__ for dots; new keys as (value, unit))."""
    metrics = {key: {"value": value, "unit": unit, "n": 100, "source": "x"} for key, (value, unit) in JOBS.items()}
    for name, value in changes.items():
        key = name.replace("__", ".")
        value_and_unit = value if isinstance(value, tuple) else (value, JOBS[key][1])
        metrics[key] = {"value": value_and_unit[0], "unit": value_and_unit[1], "n": 100, "source": "x"}
    return Numbers({key: metric for key, metric in metrics.items() if not key.startswith(tuple(omitted) or "\0")})


def proxy() -> Numbers:
    """Return the numbers of a trace that records no causes, so its plans are blank."""
    omitted = (
        "ettr.by",
        "ettr.mttf",
        "ettr.estimate",
        "ettr.low",
        "ettr.high",
        "ettr.wall",
        "ettr.assumed.failure_rate",
        "taxonomy",
        "failed_time.infra",
    )
    return numbers(
        *(*omitted, "failed_time.other", "actions.requeue", "actions.writes"),
        sizes__basis="proxy",
        ettr__withheld=("the trace does not tell", "label"),
        ettr__needed=("states that name infrastructure failures", "label"),
    )
