from ttf.charts.over_time import over_time_chart
from ttf.charts.sizes import mttf_by_gpus_chart

CHARTS = {
    "mttf_by_gpus": lambda given, study: mttf_by_gpus_chart(given["mttf_by_gpus"], given["node_failure_rate"], study),
    "failure_rate_over_time": lambda given, study: over_time_chart(given["failure_rate_over_time"], study),
}
