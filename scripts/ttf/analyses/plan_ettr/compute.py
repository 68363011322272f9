from ttf.inputs import Inputs
from ttf.stats.contour import ettr_contour
from ttf.stats.job_runs import queue_of
from ttf.stats.plans import Habits, assumptions, mitigation_table, node_rate, plan_tables

LIVES = ("unit_id", "life_id", "submit_s", "start_s", "event", "gpu_milli")


def compute(given: Inputs) -> dict:
    asked, rates = given.settings.ettr, given["node_failure_rate"]
    rate = node_rate(rates, given["mttf_by_gpus"])
    queue = queue_of(given.scan("lives_infra", LIVES), asked.get("queue_s"))
    habits = [
        Habits(interval, asked["checkpoint_write_s"], asked["restart_s"], queue["value"], asked["productive_s"])
        for interval in asked["checkpoint_intervals_s"]
    ]
    sizes = sorted({*asked["gpus"], asked["run_gpus"]})
    table, outlook = plan_tables(rate, habits, sizes, asked["simulations"], asked["seed"])
    return {
        "ettr": table,
        "ettr_outlook": outlook,
        "mitigations": mitigation_table(rate, habits[0], sizes),
        "ettr_assumptions": assumptions(rates, habits[0], queue, asked["run_gpus"]),
        "ettr_contour": ettr_contour(rate, habits[0], asked["run_gpus"]),
    }
