from ttf.inputs import Inputs
from ttf.quality.drift import between, by_window, drift_table


def compute(given: Inputs) -> dict:
    jobs, windows = given.read("jobs"), given.settings.windows
    comparisons = by_window(jobs, windows["by"], given.settings.parts) if "by" in windows else []
    if "against" in windows:
        comparisons += between(given.read("jobs_against"), jobs, (windows["against"], given.trace))
    return {"drift": drift_table(comparisons)}
