from ttf.inputs import Inputs
from ttf.stats import epochs


def compute(given: Inputs) -> dict:
    best = epochs.of_jobs(epochs.read_loss_log(given.path("losses")), given.read("jobs"))
    return {"epochs": epochs.epochs_table(best), "epochs_summary": epochs.epochs_summary(best)}
