"""The numbers of the effective training time ratio (ETTR): what the run of the target size can expect."""

import polars as pl

from ttf.analyses.large_runs.plan_ettr import ETTR, ETTR_ASSUMPTIONS, ETTR_OUTLOOK, MITIGATIONS, TARGET_RUN
from ttf.display.metrics import cells
from ttf.stats.large_runs.plans import BEST_INTERVAL, FASTER_WRITES

_TARGET = "by withheld needed basis unit queue_source no_interval mttf_low_s mttf_high_s limit.size=limit_size"
_WALL = " ".join(f"{part}_s=wall_{part}_s" for part in ("queued", "productive", "overhead"))
_CHECK = " ".join(f"{name}=check_{name}" for name in ("observed", "expected", "p_value"))
_PLAN = "nodes mttf_s optimal_interval_s valid=approximation_valid"
_EXPECTED = "interruptions=expected_interruptions wall_s=expected_wall_s scheduled_ettr"
_OPTIMUM = "at_optimum=ettr_at_optimum daly_young_s=daly_young_interval_s"
_SIMULATED = " ".join(
    f"{name}=simulated_{name}" for name in ("interruptions_p05", "interruptions_p95", "wall_p05_s", "wall_p95_s")
)
_IS_CHANGE = (pl.col("mitigation") != BEST_INTERVAL) & pl.col("ettr_after").is_not_null() & pl.col("is_target")


def _limits(key: str, suffix: str) -> str:
    """Return `number=column` for both limits of a key, as `cells` reads them."""
    column = {"wall_clock_ettr": "ettr", "scheduled_ettr": "scheduled"}[key]
    return " ".join(f"{key}_ci_{bound}{suffix}={column}_ci_{bound}" for bound in ("low", "high"))


NUMBERS = [
    cells(ETTR_ASSUMPTIONS, "ettr.assumed.{assumption}", "=amount", unit_by="unit"),
    cells(TARGET_RUN, "ettr", _TARGET),
    cells(TARGET_RUN, "ettr.{by}", "queued_s", not_blank="by"),
    cells(TARGET_RUN, "ettr.wall", _WALL),
    cells(TARGET_RUN, "actions.requeue", "saved_s=requeue_saved_s"),
    cells(TARGET_RUN, "sizes.check", _CHECK),
    cells(
        ETTR,
        "ettr.{rate}",
        "wall_clock_ettr=ettr_renewal queue_s",
        not_blank="ettr_renewal",
        n="failures",
        is_target=True,
    ),
    cells(ETTR, "ettr.{rate}", _limits("wall_clock_ettr", "_clustered"), n="failures", is_target=True, clustered=True),
    cells(ETTR, "ettr.{rate}", _limits("wall_clock_ettr", ""), n="failures", is_target=True, clustered=False),
    cells(ETTR, "ettr.measured_rate", "mttf_s", n="failures", is_target=True, rate="measured_rate"),
    cells(ETTR, "ettr", _PLAN, n="failures", answers=True),
    cells(ETTR_OUTLOOK, "ettr.{rate}", _EXPECTED, n="failures", is_target=True),
    cells(
        ETTR_OUTLOOK,
        "ettr.{rate}",
        _limits("scheduled_ettr", "_clustered"),
        n="failures",
        is_target=True,
        clustered=True,
    ),
    cells(ETTR_OUTLOOK, "ettr.{rate}", _limits("scheduled_ettr", ""), n="failures", is_target=True, clustered=False),
    cells(ETTR_OUTLOOK, "ettr", _OPTIMUM, n="failures", answers=True),
    cells(ETTR_OUTLOOK, "ettr.simulated", _SIMULATED, n="simulated_runs", answers=True),
    # A shorter queue raises the ratio most, but saves no node time.
    cells(
        MITIGATIONS,
        "ettr.mitigation",
        "name=mitigation",
        _IS_CHANGE,
        sort="-ettr_after",
        take=1,
    ),
    cells(
        MITIGATIONS,
        "actions.writes",
        "gpu_hours=gpu_hours_saved_per_productive_week cost=cost_saved_per_productive_week write_s=checkpoint_write_s",
        is_target=True,
        mitigation=FASTER_WRITES,
    ),
]
