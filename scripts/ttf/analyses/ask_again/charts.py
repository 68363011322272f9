from ttf.charts.study1 import asked_twice

CHARTS = {"study1_asked_twice": lambda given, study: asked_twice(given["study1"], study, given.settings.significance)}
