from ttf.charts.failure_share import failure_share
from ttf.charts.gpu_types import runtime_by_gpu_type
from ttf.charts.run_times import runtime_by_measured_use, runtime_by_request


def _by_request(feature, log):
    return lambda given, study: runtime_by_request(
        given["runtime_by_group"], given["correlations"], feature, study, log=log
    )


def _by_use(log):
    return lambda given, study: runtime_by_measured_use(
        given["runtime_by_group"], given["correlations"], study, log=log
    )


AXES = {"": False, "_log": True}
CHARTS = {
    "runtime_by_gpu_type": lambda given, study: runtime_by_gpu_type(given["runtime_by_group"], study),
    **{
        f"runtime_by_{feature}{axis}": _by_request(feature, log)
        for feature in ("gpu_request", "cpu_request", "memory_request", "size")
        for axis, log in AXES.items()
    },
    **{f"runtime_by_measured_use{axis}": _by_use(log) for axis, log in AXES.items()},
    "failure_share": lambda given, study: failure_share(given["failure_share"], given["outcomes"], study),
}
