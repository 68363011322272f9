from ttf.charts.drift import drift_chart

CHARTS = {"drift": lambda given, study: drift_chart(given["drift"], study)}
