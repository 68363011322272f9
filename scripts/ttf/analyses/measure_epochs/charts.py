from ttf.charts.epochs import CHARTS

__all__ = ["CHARTS"]
