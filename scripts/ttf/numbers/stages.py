"""The numbers of what comes before the analyses: rows, quality, jobs, and whether two sources of times agree."""

from ttf.inputs import Inputs
from ttf.numbers.jobs import of_agreement, of_jobs, of_rows
from ttf.numbers.metrics import Metrics
from ttf.numbers.quality import of_quality


def of_stages(metrics: Metrics, given: Inputs) -> None:
    if "row_account" in given:
        of_rows(metrics, given["row_account"])
        of_quality(metrics, given["anomalies"], given["statistics"], given["validation"])
    if "nodes" in given:
        of_jobs(metrics, given.scan("jobs"), given.read("nodes"))
        of_agreement(metrics, given["runtime_agreement"])
