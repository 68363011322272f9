from ttf.charts.text import plural
from ttf.inputs import Inputs
from ttf.replication.study1 import ask_again
from ttf.stats.features import FEATURES

JOBS = ["outcome", "runtime_s", "start_s", "trace_end_s", *(feature.column for feature in FEATURES)]


def compute(given: Inputs) -> dict:
    tables = [given[name] for name in ("correlations", "runtime_by_group", "mttf")]
    units, significance = plural(given.settings.unit), given.settings.significance
    return {"study1": ask_again(given.scan("jobs", JOBS), *tables, units, significance)}
