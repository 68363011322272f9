"""The charts of what goes with run time and failure."""

from functools import partial

from ttf.analyses.correlate.failure_share_chart import failure_share
from ttf.analyses.correlate.gpu_type_chart import runtime_by_gpu_type
from ttf.analyses.correlate.run_time_charts import runtime_by_measured_use, runtime_by_request

_AXES = {"": False, "_log": True}
CHARTS = {
    "runtime_by_gpu_type": runtime_by_gpu_type,
    **{
        f"runtime_by_{feature}{axis}": partial(runtime_by_request, feature=feature, log=log)
        for feature in ("gpu_request", "cpu_request", "memory_request", "size")
        for axis, log in _AXES.items()
    },
    **{f"runtime_by_measured_use{axis}": partial(runtime_by_measured_use, log=log) for axis, log in _AXES.items()},
    "failure_share": failure_share,
}
