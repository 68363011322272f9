from ttf.charts.queueing import CHARTS

__all__ = ["CHARTS"]
