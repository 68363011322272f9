from ttf.charts.lost_work import concentration_chart, lost_work_chart, what_if_chart

CHARTS = {
    "lost_work": lambda given, study: lost_work_chart(given["lost_work"], study),
    "failure_concentration": lambda given, study: concentration_chart(given["failure_concentration"], study),
    "what_if": lambda given, study: what_if_chart(given["what_if"], study),
}
