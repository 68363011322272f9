import polars as pl

from ttf.analyses.follow_rate.over_time import failure_rate_over_time, with_domains
from ttf.clusters import CLUSTER_COLUMNS
from ttf.inputs import Inputs

LIVES = ("basis", "event", "cause", "start_s", "duration_s", "gpu_count", "gpu_milli", "nodes", *CLUSTER_COLUMNS)


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    # What counts as a failure and what a node holds is said once.
    basis, *node_gpus = given["node_failure_rate"].select("basis", "node_gpus", "node_gpus_from").row(0)
    lives, cause_is = given.scan("lives_infra", LIVES), "cause"
    if basis == "proxy" and "reasons" in given:
        # Nothing attributes a failure to a cause but the words and codes that the taxonomy reads.
        named = given.scan("lives_infra", [*LIVES, "unit_id", "life_id"])
        lives, cause_is = with_domains(named, given.scan("reasons")), "domain"
    return {"failure_rate_over_time": failure_rate_over_time(lives, basis, *node_gpus, cause_is)}
