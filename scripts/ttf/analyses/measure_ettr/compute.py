from ttf.inputs import Inputs
from ttf.stats.job_runs import job_runs, measured_table
from ttf.stats.plans import Habits, node_rate


def compute(given: Inputs) -> dict:
    asked = given.settings.ettr
    # The waits are those of the trace here, whatever is planned with.
    habits = Habits(
        asked["checkpoint_intervals_s"][0], asked["checkpoint_write_s"], asked["restart_s"], 0, asked["productive_s"]
    )
    rate = node_rate(given["node_failure_rate"], given["mttf_by_gpus"])
    attempts, jobs = given.read("lives_infra"), given.read("jobs")
    runs = job_runs(attempts, jobs, asked["run_key"], asked["run_at_least_s"], habits)
    return {"ettr_measured": measured_table(runs, rate, habits)}
