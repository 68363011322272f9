from ttf.charts.states import size_mix_chart, states_chart

CHARTS = {
    "states": lambda given, study: states_chart(given["states"], study),
    "size_mix": lambda given, study: size_mix_chart(given["size_mix"], study),
}
