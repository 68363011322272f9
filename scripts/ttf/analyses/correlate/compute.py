from ttf.inputs import Inputs
from ttf.stats.correlation import groups_and_correlations
from ttf.stats.shares import failure_share


def compute(given: Inputs) -> dict:
    jobs, settings = given.scan("jobs"), given.settings
    groups, table = groups_and_correlations(jobs, [None, *settings.cutoffs_s], settings.significance)
    return {"failure_share": failure_share(jobs), "runtime_by_group": groups, "correlations": table}
