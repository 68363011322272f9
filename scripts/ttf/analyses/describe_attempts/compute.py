"""How long attempts wait, how often jobs are tried, how long attempts run until they fail."""

from ttf.analyses.describe_attempts import delays, retries
from ttf.clusters import READ_OF_JOBS
from ttf.inputs import Inputs

JOBS = ("job_id", "user", "account", "outcome", "gpu_milli", "size", "attempts", "submit_s", "start_s")
OF_RETRIES = ("outcome", "gpu_milli", "size", "attempts", *READ_OF_JOBS)
ATTEMPTS = ("job_id", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "nodes")


def compute(given: Inputs) -> dict:
    jobs, window = given.read("jobs", JOBS), given.settings.window
    placed = delays.placed(jobs, given.read("attempts", ATTEMPTS))
    jobs = jobs.drop("job_id")
    waits, tries = delays.waits(placed), retries.tries(placed)
    alike = given.scan("jobs", OF_RETRIES)
    return {
        "delays": delays.delays(waits, delays.busiest(jobs)),
        "delay_by_nodes": delays.delay_by_nodes(waits),
        "out_of_order": delays.out_of_order(jobs),
        "retries": retries.retries(alike),
        "runtime_to_failure": retries.runtime_to_failure(tries),
        "failed_attempts": retries.failed_attempts(alike, tries),
        "outcomes_window": retries.outcomes_window(jobs, tries, tuple(window) if window else None),
    }
