"""Made-up numbers for tests of the brief: a Slurm cluster with every number present."""

from ttf.display.phrases import strip_markup
from ttf.display.trace_numbers import Numbers
from ttf.engine.columns import GAP

ABOUT = {
    "unit": "job",
    "subject": "job",
    "gives": "jobs",
    "clock": "UTC",
    "failure_words": ["FAILED", "TIMEOUT"],
    "targets": {},
}
COMPONENTS = ABOUT | {"unit": "node", "subject": GAP, "gives": "durations", "failure_words": []}

JOBS = {
    "data.jobs": (53_806, "jobs"),
    "data.users": (120, "users"),
    "data.rows_read": (60_000, "rows"),
    "period.days": (99, "days"),
    "period.from_s": (1_740_787_200, "s"),
    "period.to_s": (1_749_254_400, "s"),
    "quality.quarantined_share": (0.0, "share"),
    "taxonomy.trials": (12_875, "failed attempts"),
    "taxonomy.unmatched_share": (0.1, "share"),
    "without_end.share": (0.0, "share"),
    "without_end.without_end": (0, "failures"),
    "without_end.failures": (12_806, "failures"),
    "outcomes.ended": (40_226, "jobs"),
    "outcomes.ended_share": (0.7476, "share"),
    "outcomes.unresolved_share": (0.17, "share"),
    "outcomes.failure.jobs": (12_806, "jobs"),
    "outcomes.failure_share": (0.3183, "share"),
    "outcomes.failure_share_low": (0.3138, "share"),
    "outcomes.failure_share_high": (0.3229, "share"),
    "outcomes.failure_share_low_clustered": (0.29, "share"),
    "outcomes.failure_share_high_clustered": (0.35, "share"),
    "outcomes.timeouts": (3_501, "jobs"),
    "outcomes.timeout_share": (0.2734, "share"),
    "outcomes.failure_share_without_timeout": (0.231, "share"),
    "outcomes.failure.runtime_median_s": (822.0, "s"),
    "outcomes.failure.runtime_median_low_s": (762, "s"),
    "outcomes.failure.runtime_median_high_s": (888, "s"),
    "outcomes.failure.with_runtime": (12_806, "jobs"),
    "lost_work.runs": (42_613, "runs"),
    "lost_work.gpu_hours": (3.47e6, "GPU-hours"),
    "lost_work.failed_gpu_hours_share": (0.486, "share"),
    "lost_work.failed_without_time": (0, "runs"),
    "lost_work.infra_failures": (169, "failures"),
    "lost_work.infra_without_time": (0, "failures"),
    "lost_work.checkpoint_interval_s": (3600, "s"),
    "failed_time.limit.share": (0.53, "share"),
    "failed_time.infra.share": (0.14, "share"),
    "failed_time.other.share": (0.33, "share"),
    "sizes.basis": ("event", "label"),
    "sizes.node_gpus_from": ("trace", "label"),
    "sizes.rate.failures": (80, "failures"),
    "sizes.rate.failures_per_1000_node_days": (9.28, "failures per 1000 node days"),
    "sizes.rate.ci_low": (7.64, "failures per 1000 node days"),
    "sizes.rate.ci_high": (11.2, "failures per 1000 node days"),
    "sizes.rate.above_gpus": (128, "GPUs"),
    "sizes.rate.node_days": (8_620.0, "node days"),
    "sizes.rate.days_per_failure": (107.8, "days"),
    "sizes.law.verdict": ("agrees", "label"),
    "sizes.largest_run.gpus": (1024, "GPUs"),
    "ettr.assumed.size_of_the_run": (1024, "GPUs"),
    "ettr.assumed.work_of_the_run": (1_209_600, "s"),
    "ettr.assumed.checkpoint_write": (300, "s"),
    "ettr.assumed.failure_rate": (9.28, "failures per 1000 node-days"),
    "ettr.unit": ("GPUs", "label"),
    "ettr.by": ("estimate", "label"),
    "ettr.mttf_s": (72_720.0, "s"),
    "ettr.mttf_low_s": (60_480.0, "s"),
    "ettr.mttf_high_s": (88_200.0, "s"),
    "ettr.estimate.wall_clock_ettr": (0.076, "share"),
    "ettr.estimate.wall_clock_ettr_ci_low": (0.061, "share"),
    "ettr.estimate.wall_clock_ettr_ci_high": (0.094, "share"),
    "ettr.low.wall_clock_ettr": (0.091, "share"),
    "ettr.high.wall_clock_ettr": (0.064, "share"),
    "ettr.estimate.interruptions": (18.6, "interruptions"),
    "ettr.estimate.scheduled_ettr": (0.895, "share"),
    "ettr.estimate.scheduled_ettr_ci_low": (0.88, "share"),
    "ettr.estimate.scheduled_ettr_ci_high": (0.907, "share"),
    "ettr.estimate.queue_s": (739_584, "s"),
    "ettr.estimate.wall_s": (15_800_000.0, "s"),
    "ettr.wall.queued_s": (14_500_000.0, "s"),
    "ettr.wall.productive_s": (1_209_600, "s"),
    "ettr.wall.overhead_s": (140_000.0, "s"),
    "lifetimes.verdict": ("falls", "label"),
    "lifetimes.shape": (0.46, "1"),
    "states.timeouts": (3_501, "ends"),
    "lemons.lemons": (0, "nodes"),
    "lemons.tested": (200, "nodes"),
    "lemons.failures": (169, "failures"),
    "lemons.window_failures": (169, "failures"),
    "lemons.detectable_ratio": (3.2, "1"),
    "actions.save_state.gpu_hours": (895_000.0, "GPU-hours"),
    "actions.save_state.share": (0.258, "share"),
    "actions.checkpoint.gpu_hours": (467_000.0, "GPU-hours"),
    "actions.checkpoint.share": (0.134, "share"),
    "actions.checkpoint.ended": (483_000.0, "GPU-hours"),
    "actions.checkpoint.lost": (16_200.0, "GPU-hours"),
    "actions.checkpoint.failures": (115, "failures"),
    "actions.checkpoint.above_gpus": (64, "GPUs"),
    "actions.trial_on_one_gpu.gpu_hours": (865.0, "GPU-hours"),
    "actions.trial_on_one_gpu.share": (0.00025, "share"),
    "actions.requeue.saved_s": (13_750_000.0, "s"),
    "actions.writes.gpu_hours": (13_600.0, "GPU-hours"),
    "actions.writes.write_s": (30.0, "s"),
    "what_if.trial_on_one_gpu.trial_s": (60, "s"),
    "what_if.trial_on_one_gpu.affected": (60, "jobs"),
    "what_if.trial_on_one_gpu.n": (856, "jobs"),
}


def plain(text: str) -> str:
    return strip_markup(text).replace("\u00a0", " ")


def numbers(*omitted: str, **changes) -> Numbers:
    """Return JOBS without some keys and with changed values (__ for dots; new keys as (value, unit))."""
    metrics = {key: {"value": value, "unit": unit, "n": 100, "source": "x"} for key, (value, unit) in JOBS.items()}
    for name, value in changes.items():
        key = name.replace("__", ".")
        value_and_unit = value if isinstance(value, tuple) else (value, JOBS[key][1])
        metrics[key] = {"value": value_and_unit[0], "unit": value_and_unit[1], "n": 100, "source": "x"}
    return Numbers({key: metric for key, metric in metrics.items() if not key.startswith(tuple(omitted) or "\0")})


def proxy() -> Numbers:
    """Return the numbers of a trace that records no causes, so its plans are blank."""
    omitted = (
        "ettr.by",
        "ettr.mttf",
        "ettr.estimate",
        "ettr.low",
        "ettr.high",
        "ettr.wall",
        "ettr.assumed.failure_rate",
        "taxonomy",
        "failed_time.infra",
    )
    return numbers(
        *(*omitted, "failed_time.other", "actions.requeue", "actions.writes"),
        sizes__basis="proxy",
        ettr__withheld=("the trace does not tell", "label"),
        ettr__needed=("states that name infrastructure failures", "label"),
    )
