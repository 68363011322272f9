from ttf.charts.use import CHARTS

__all__ = ["CHARTS"]
