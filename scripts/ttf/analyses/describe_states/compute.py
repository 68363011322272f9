from ttf.inputs import Inputs
from ttf.stats.states import cluster_summary, size_mix, states

JOBS = ["status_raw", "outcome", "gpu_milli", "size", "runtime_s", "queue_s", "submit_s", "start_s", "trace_end_s"]
LIVES = ["state", "gpu_milli", "duration_s", "event", "basis"]


def compute(given: Inputs) -> dict:
    jobs = given.scan("jobs", JOBS)
    return {
        "states": states(jobs, given.scan("lives_infra", LIVES), given.settings.attempts),
        "size_mix": size_mix(jobs),
        "cluster_summary": cluster_summary(jobs),
    }
