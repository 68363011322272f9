"""The numbers of measured job runs."""

from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, given: Inputs) -> None:
    """How many job runs were measured, and their mean ratio beside the expected one."""
    measured, source = given["ettr_measured"], "tables/ettr_measured.csv"
    runs = int(measured["runs"].sum())
    metrics.put("ettr.measured.runs", runs, "runs", source)
    if not runs:
        return
    metrics.put("ettr.measured.interruptions", int(measured["interruptions"].sum()), "interruptions", source, runs)
    columns = {"mean": "ettr_mean", "expected": "expected_ettr", "if_all_interrupted": "ettr_if_all_interrupted_mean"}
    for name, column in columns.items():
        if not measured[column].null_count():
            mean = float((measured[column] * measured["runs"]).sum()) / runs
            metrics.put(f"ettr.measured.{name}", mean, "share", source, runs)
