from ttf.charts.compare import BUILDERS


class _Compared:
    def __init__(self, given):
        self._given = given

    def __getitem__(self, name):
        return self._given[f"compared_{name}"]


CHARTS = {name: lambda given, study, build=build: build(_Compared(given)) for name, build in BUILDERS.items()}
