from ttf.charts.ettr import ettr_measured

CHARTS = {"ettr_measured": lambda given, study: ettr_measured(given["ettr_measured"], study)}
