"""The numbers that only the brief names: shares of the lost time, times at the target size, effects of actions."""

import polars as pl

from ttf.inputs import Inputs
from ttf.jobs import TIME_LIMITS
from ttf.numbers.metrics import Metrics
from ttf.page.numbers import Numbers

DAY_S = 86_400
FASTER_WRITES = "checkpoint write ten times faster"
# Runs above a size are named where they hold so much of the GPU time that infrastructure failures ended.
MOST_OF_IT = 0.9


def of_brief(metrics: Metrics, given: Inputs) -> None:
    """Put them; what they rest on is there or they are left out."""
    m = Numbers(metrics)
    of_period(metrics, m, given)
    of_quality(metrics, m)
    of_failed_time(metrics, m, given)
    of_rate(metrics, m, given)
    of_target(metrics, m, given)
    of_actions(metrics, Numbers(metrics), given)


def of_period(metrics: Metrics, m: Numbers, given: Inputs) -> None:
    """From the first moment of the trace to its last."""
    moments = {
        "jobs": ("submit_s", "trace_end_s"),
        "lives": ("start_s", "end_s"),
        "outages": ("start_s", "seen_until_s"),
    }
    table = next(name for name in moments if name in given)
    source, (first, last) = f"{table}.parquet", moments[table]
    frame = given.scan(table)
    names = frame.collect_schema().names()
    if first not in names:
        return
    end = pl.col(last) if last in names else pl.col(first) + pl.col("duration_s")
    ends = frame.select(first=pl.col(first).min(), last=end.max()).collect(engine="streaming").row(0)
    if None in ends:
        return
    metrics.put("period.from_s", ends[0], "s", source)
    metrics.put("period.to_s", ends[1], "s", source)
    metrics.put("period.days", -(-(ends[1] - ends[0]) // DAY_S), "days", source)


def of_quality(metrics: Metrics, m: Numbers) -> None:
    if read := m.value("data.rows_read", 0):
        share = m["data.rows_quarantined"] / read
        metrics.put("quality.quarantined_share", share, "share", "quality/row_account.csv", read)
    if m.has("outcomes.ended_share"):
        jobs = m["data.jobs"]
        # A cancelled job has ended, though neither in success nor in failure.
        closed = m["outcomes.ended_share"] + m.value("outcomes.cancelled.jobs_share", 0.0)
        metrics.put("outcomes.unresolved_share", max(0.0, 1 - closed), "share", "tables/outcomes.csv", jobs)


def of_failed_time(metrics: Metrics, m: Numbers, given: Inputs) -> None:
    """GPU time of failed attempts by what ended them: time limits, infrastructure, anything else."""
    if not (failed := m.value("lost_work.failed_gpu_hours", 0.0)) or "states" not in given:
        return
    runs, source = m["lost_work.failed_runs"], "tables/states.csv"
    states = given["states"].filter(pl.col("kind") == "state", pl.col("unit") == m["states.unit"])
    limit = float(states.filter(pl.col("state").is_in(list(TIME_LIMITS)))["gpu_hours"].sum())
    parts = {"limit": limit}
    if m["lost_work.infra_basis"] != "proxy":
        parts["infra"] = m["lost_work.infra_gpu_hours"]
        parts["other"] = max(0.0, failed - limit - parts["infra"])
    for name, hours in parts.items():
        metrics.put(f"failed_time.{name}.gpu_hours", hours, "GPU hours", source, runs)
        metrics.put(f"failed_time.{name}.share", min(1.0, hours / failed), "share", source, runs)


def of_rate(metrics: Metrics, m: Numbers, given: Inputs) -> None:
    """Days of use of a node between failures, and the rate of the last window."""
    if rate := m.value("sizes.rate.failures_per_1000_node_days", 0.0):
        failures = m["sizes.rate.failures"]
        metrics.put("sizes.rate.days_a_failure", 1000 / rate, "days", "tables/node_failure_rate.csv", failures)
    if "failure_rate_over_time" not in given:
        return
    windows = given["failure_rate_over_time"].filter(pl.col("by") == "all")
    for row in windows.drop_nulls("failures_per_1000_node_days").tail(1).iter_rows(named=True):
        rate, source = row["failures_per_1000_node_days"], "tables/failure_rate_over_time.csv"
        metrics.put("sizes.over_time.last", rate, "failures per 1000 node days", source, row["failures"])


def of_target(metrics: Metrics, m: Numbers, given: Inputs) -> None:
    """At the size of the run: the ends of its mean time to failure, and the wall clock in parts."""
    if not m.has("ettr.by"):
        return
    by, source = m["ettr.by"], "tables/ettr.csv"
    size, interval_s = m["ettr.assumed.size_of_the_run"], m["ettr.assumed.checkpoint_interval"]
    mine = given["ettr"].filter(
        (pl.coalesce("gpus", "nodes") == size) & (pl.col("checkpoint_interval_s") == interval_s)
    )
    # A higher rate is a shorter time.
    for end, other in (("low", "high"), ("high", "low")):
        rate = other if by == "estimate" else f"measured_rate_{other}"
        for row in mine.filter(pl.col("rate") == rate).drop_nulls("mttf_s").iter_rows(named=True):
            metrics.put(f"ettr.mttf_{end}_s", row["mttf_s"], "s", source, m.n(f"ettr.{by}.ettr"))
    for row in mine.filter(pl.col("rate") == "measured_rate").drop_nulls("mttf_s").iter_rows(named=True):
        metrics.put("ettr.measured_rate.mttf_s", row["mttf_s"], "s", source, m.value("sizes.check.observed", None))
    if not (m.has(f"ettr.{by}.wall_s") and m.value(f"ettr.{by}.scheduled_share", 0)):
        return
    work, wall = m["ettr.assumed.work_of_the_run"], m[f"ettr.{by}.wall_s"]
    held = work / m[f"ettr.{by}.scheduled_share"]
    queue = max(0.0, wall - held)
    times = {"queued_s": queue, "productive_s": work, "overhead_s": max(0.0, held - work)}
    for name, value in times.items():
        metrics.put(f"ettr.wall.{name}", value, "s", "tables/ettr_outlook.csv", m.n(f"ettr.{by}.ettr"))


def of_actions(metrics: Metrics, m: Numbers, given: Inputs) -> None:
    """What each action could save at most, in GPU-hours of the trace or of a run."""
    total = m.value("lost_work.gpu_hours", 0.0)

    def put(action: str, hours: float, source: str) -> None:
        metrics.put(f"actions.{action}.gpu_hours", hours, "GPU hours", source, m.value("lost_work.runs", None))
        if total:
            metrics.put(f"actions.{action}.share", hours / total, "share", source, m.value("lost_work.runs", None))

    if m.value("failed_time.limit.gpu_hours", 0.0):
        put("save_state", m["failed_time.limit.gpu_hours"], "tables/states.csv")
    if m.value("lost_work.infra_gpu_hours", 0.0):
        source = "tables/lost_work.csv"
        for name, value, unit in _to_checkpoint(given["lost_work"]):
            metrics.put(f"actions.checkpoint.{name}", value, unit, source, m["lost_work.runs"])
        ended, lost = metrics["actions.checkpoint.ended"]["value"], metrics["actions.checkpoint.lost"]["value"]
        put("checkpoint", max(0.0, ended - lost), source)
    for name in ("trial_on_one_gpu", "no_retry", "no_retry_of_deterministic"):
        if m.has(f"what_if.{name}.net_gpu_hours"):
            # What jobs that would have succeeded after all had done is lost.
            given_up = m.value(f"what_if.{name}.given_up_gpu_hours", 0.0)
            put(name, m[f"what_if.{name}.net_gpu_hours"] - given_up, "tables/what_if.csv")
    if m.value("lemons.lemons", 0) and m.has("lemons.share_of_failures") and m.has("lost_work.infra_gpu_hours"):
        put("drain", m["lemons.share_of_failures"] * m["lost_work.infra_gpu_hours"], "tables/lemon_nodes.csv")
    if m.has("ettr.wall.queued_s"):
        by = m["ettr.by"]
        again = m[f"ettr.{by}.interruptions"] * m[f"ettr.{by}.queue_s"]
        metrics.put("actions.requeue.saved_s", again, "s", "tables/ettr_outlook.csv", m.n(f"ettr.{by}.ettr"))
    if "mitigations" in given and m.has("ettr.by"):
        size = m["ettr.assumed.size_of_the_run"]
        is_mine = (pl.coalesce("gpus", "nodes") == size) & (pl.col("mitigation") == FASTER_WRITES)
        for row in given["mitigations"].filter(is_mine).iter_rows(named=True):
            saved, source = row["gpu_hours_saved_per_productive_week"], "tables/mitigations.csv"
            metrics.put("actions.writes.gpu_hours", saved, "GPU hours", source)
            metrics.put("actions.writes.write_s", row["checkpoint_write_s"], "s", source)


def _to_checkpoint(sizes: pl.DataFrame) -> list[tuple[str, float, str]]:
    """Of the runs above the largest size that still hold MOST_OF_IT: the size, their failures, what these ended."""
    sizes = sizes.sort("gpus_low")
    held = sizes["infra_gpu_hours"].cum_sum(reverse=True) / sizes["infra_gpu_hours"].sum()
    above = sizes.filter(held >= MOST_OF_IT).tail(1)["gpus_low"].item()
    rows = sizes.filter(pl.col("gpus_low") >= above)
    sums = {"ended": "infra_gpu_hours", "lost": "first_order_gpu_hours", "failures": "infra_failures"}
    units = {"ended": "GPU hours", "lost": "GPU hours", "failures": "failures"}
    found = [(name, rows[column].sum(), units[name]) for name, column in sums.items()]
    return [*found, ("above_gpus", max(above - 1, 0), "GPUs")]


def of_grade(metrics: Metrics, grade: str, reason: str) -> None:
    metrics.put("quality.grade", grade, "label", "metrics.json")
    metrics.put("quality.grade_reason", reason, "label", "metrics.json")
