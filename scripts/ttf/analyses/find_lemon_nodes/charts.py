from ttf.charts.lemons import lemon_funnel, lemon_signals

CHARTS = {
    "lemons": lambda given, study: lemon_funnel(given["lemon_nodes"], study, given.settings.false_discovery),
    "lemon_signals": lambda given, study: lemon_signals(given["lemon_nodes"], study),
}
