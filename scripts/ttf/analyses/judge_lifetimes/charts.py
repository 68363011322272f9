from ttf.analyses.judge_lifetimes.compute import CURVES
from ttf.charts.probability import probability_plots


def _plots(given, stratum_by, study):
    return probability_plots(given.scan("survival_curves", CURVES), given["lifetime_models"], stratum_by, study)


CHARTS = {
    "probability_plots": lambda given, study: _plots(given, "all", study),
    "probability_plots_by_stratum": lambda given, study: _plots(given, given.settings.stratum_by, study),
}
