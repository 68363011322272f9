from ttf.charts.contour import contour_chart
from ttf.charts.ettr import ettr_by_gpus
from ttf.charts.planner import planner
from ttf.stats.plans import habits_of, node_rate


def _rate(given):
    return node_rate(given["node_failure_rate"], given["mttf_by_gpus"])


CHARTS = {
    "ettr_by_gpus": lambda given, study: ettr_by_gpus(
        given["ettr"], given["node_failure_rate"], given.settings.ettr["run_gpus"], study
    ),
    "ettr_contour": lambda given, study: contour_chart(
        given["ettr_contour"], _rate(given), habits_of(given["ettr_assumptions"]), study
    ),
    "ettr_planner": lambda given, study: planner(
        given["node_failure_rate"],
        _rate(given),
        habits_of(given["ettr_assumptions"]),
        given.settings.ettr["run_gpus"],
        study,
    ),
}
