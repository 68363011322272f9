from ttf.charts.taxonomy import taxonomy_chart

CHARTS = {"taxonomy": lambda given, study: taxonomy_chart(given["taxonomy"], study)}
