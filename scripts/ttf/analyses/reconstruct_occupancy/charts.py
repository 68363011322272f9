from ttf.charts.occupancy import CHARTS

__all__ = ["CHARTS"]
