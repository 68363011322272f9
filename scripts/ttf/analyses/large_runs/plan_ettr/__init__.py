"""What effective training time ratio, and how many interruptions, can a job run of each size expect?"""

from dataclasses import replace

from ttf.analyses.declaration import Analysis, price_settings
from ttf.engine.contract import REASON, count, number, reason, seconds, share, table, truth, words

_GPUS = {"gpus": count("GPUs", "GPUs of the run.", "sizes are numbers of nodes")}
_NODES = {"nodes": count("Nodes", "Whole nodes of the run, rounded up.", REASON)}
_SIZE = _GPUS | _NODES
_NODE_RATE = {"failure_rate_per_node_day": number("Failures per node-day", "Rate of one node in the plan.", REASON)}
_INTERVAL = {"checkpoint_interval_s": seconds("Checkpoint interval", "Work between two checkpoints.")}
_HABITS = {
    "checkpoint_write_s": seconds("Checkpoint write", "Time that writing a checkpoint blocks the work."),
    "restart_s": seconds("Start-up", "Time from being scheduled to working."),
    "queue_s": seconds("Queue", "Mean wait at the submission and after each failure."),
    "productive_s": seconds("Work", "Productive time that the run needs."),
}
_PLAN = _SIZE | _NODE_RATE | _INTERVAL | _HABITS
_BOUND = {
    "rate": words("Rate", "estimate, low or high (bounds, clustered if possible), or measured_rate and its bounds.")
}
_BEST = {
    "optimal_interval_s": seconds(
        "Best interval", "Best checkpoint interval for long runs, at most the whole work.", REASON
    )
}

_CLUSTERED = truth("Clustered", "Whether the interval is valid if users and weeks differ.")
_TARGET = {
    "failures": count("Failures", "Failures from which the rate is estimated.", "they are not counted", "failures"),
    "is_target": truth("Target", "Whether the row is the target run at the first checkpoint interval."),
    "answers": truth("Answers", "Whether the page quotes the row."),
}
_NO_BOUNDS = "the row is a bound of the rate, the rate has no lower bound, or the column reason says why"
ETTR = table(
    "ettr",
    "A size of run, a checkpoint interval and a failure rate: the expected effective training time ratio (ETTR).",
    **_PLAN,
    mttf_s=seconds("Failure every", "Mean time to failure of the whole run.", REASON),
    ettr_v1=share("ETTR, version 1", "Approximation of Kokolis et al., version 1: writes are free.", REASON),
    ettr_v2=share("ETTR, version 2", "Approximation of Kokolis et al., version 2: a long run, no queue.", REASON),
    ettr_combined=share("ETTR, combined", "Approximation that combines both versions of Kokolis et al.", REASON),
    ettr_renewal=share(
        "Wall-clock ETTR", "Work divided by the exact mean wall-clock time of the renewal model.", REASON
    ),
    ettr_ci_low=share("90% from", "Lower bound of the exact ETTR, from the errors of rate and wait.", _NO_BOUNDS),
    ettr_ci_high=share("90% to", "Upper bound of the interval.", _NO_BOUNDS),
    ettr_simulated=share("ETTR, simulated", "Work divided by the mean wall-clock time of simulated runs.", REASON),
    ettr_simulated_se=share("Standard error", "Standard error of the simulated ETTR.", REASON),
    **_BEST,
    **_BOUND,
    approximation_valid=truth("Valid", "Whether failures take at most 0.3 of the scheduled time.", REASON),
    clustered=_CLUSTERED,
    **_TARGET,
)
ETTR_OUTLOOK = table(
    "ettr_outlook",
    "What each run of the table ettr can expect, in the same order.",
    **_PLAN,
    **_BOUND,
    ettr_long_run=share("ETTR, long run", "Limit of the exact ETTR as the work grows.", REASON),
    expected_interruptions=number("Interruptions", "Mean number of failures until the work is done.", REASON),
    expected_wall_s=seconds("Wall clock", "Mean time from the submission until the work is done.", REASON),
    scheduled_ettr=share("Scheduled ETTR", "Work divided by the time that nodes are allocated.", REASON),
    scheduled_ci_low=share("90% from", "ETTR of scheduled time at the upper bound of the failure rate.", _NO_BOUNDS),
    scheduled_ci_high=share("90% to", "ETTR of scheduled time at the lower bound of the failure rate.", _NO_BOUNDS),
    simulated_runs=count("Simulated runs", "Number of runs simulated.", REASON, unit="runs"),
    simulated_interruptions_p05=number("Interruptions, 5%", "5th percentile over simulated runs.", REASON),
    simulated_interruptions_p95=number("Interruptions, 95%", "95th percentile over simulated runs.", REASON),
    simulated_wall_p05_s=seconds("Wall clock, 5%", "5th percentile over simulated runs.", REASON),
    simulated_wall_p95_s=seconds("Wall clock, 95%", "95th percentile over simulated runs.", REASON),
    daly_young_interval_s=seconds("Daly-Young interval", "Checkpoint interval by Young and Daly's formula.", REASON),
    **_BEST,
    ettr_at_optimum=share(
        "Wall-clock ETTR at the best interval", "Exact ETTR at the best checkpoint interval.", REASON
    ),
    clustered=_CLUSTERED,
    **_TARGET,
)
MITIGATIONS = table(
    "mitigations",
    "A size of run and one change: its effect. The columns of the plan are those after the change.",
    **_SIZE,
    mitigation=words("Change", "Assumption that is changed.", REASON),
    **_NODE_RATE,
    **{name: replace(column, blank=REASON) for name, column in (_INTERVAL | _HABITS).items()},
    ettr_before=share("Wall-clock ETTR before", "Exact ETTR without the change.", REASON),
    ettr_after=share("Wall-clock ETTR after", "Exact ETTR with the change.", REASON),
    node_hours_saved_per_productive_week=number(
        "node-hours saved a week of work", "Node-hours saved for each week of work.", REASON, unit="node-hours"
    ),
    gpu_hours_saved_per_productive_week=number(
        *("GPU-hours saved a week of work", "GPU-hours saved for each week of work."),
        blank="sizes are numbers of nodes, or the column reason says why",
        unit="GPU-hours",
    ),
    cost_saved_per_productive_week=number(
        *("Cost saved a week of work", "Price of these GPU-hours."),
        blank="ledger.price_per_gpu_hour is not set, or the GPU-hours are blank",
        unit="currency",
    ),
    is_target=truth("Target", "Whether the row is the target run."),
)
ETTR_ASSUMPTIONS = table(
    "ettr_assumptions",
    "An assumption of the plans, and its source.",
    assumption=words("What", "The assumption."),
    amount=number("Amount", "Value of the assumption.", "the failure rate of a node is not known"),
    unit=words("Unit", "Unit of the amount."),
    n=count("n", "Failures or waits from which the amount is estimated.", "it is not estimated from counts"),
    source=words(
        "From", "Trace, configuration, or how failures are attributed to infrastructure.", "no run has a known time"
    ),
    reason=reason("Why the failure rate, or the interval of the mean wait, is unknown."),
)
_NOT_PLANNED = "this size has no rate to plan with, or the rate has no such bound"
_FROM_FAILURES = {"blank": _NOT_PLANNED, "n": "failures"}
_NO_TEST = "there is no test of runs of that size"
TARGET_RUN = table(
    "target_run",
    "The planned run, at the failure rate that the page quotes.",
    by=words("By", "Source: estimate (projected rate) or measured_rate (runs of that size).", _NOT_PLANNED),
    withheld=words("Withheld", "Why the rate is not projected to that size.", "it is projected"),
    needed=words("Needed", "Data needed for a projection.", "it is projected"),
    basis=words(
        "Basis", "How failures are attributed to infrastructure.", "no run has a known time", n="rate_failures"
    ),
    unit=words("Unit", "Unit of the run's size."),
    queue_source=words("Queue from", "Source of the mean wait."),
    no_interval=words("No interval", "Why the ratio has no interval.", "it has one"),
    rate_failures=count(
        "Failures", "Failures from which the rate of a node is estimated.", "no run has a known time", "failures"
    ),
    failures=count("Failures", "Failures from which the quoted rate is estimated.", _NOT_PLANNED, "failures"),
    waits=count("Waits", "Number of waits in the mean.", "it is configured, or no wait is known"),
    mttf_low_s=seconds("Failure every, from", "Mean time to failure at the upper bound of the rate.", **_FROM_FAILURES),
    mttf_high_s=seconds("to", "Mean time to failure at the lower bound of the rate.", **_FROM_FAILURES),
    queued_s=seconds("Queued", "Total wait, at the submission and after each failure.", _NOT_PLANNED, n="waits"),
    requeue_saved_s=seconds("Saved by requeueing at once", "Total wait after failures.", **_FROM_FAILURES),
    wall_queued_s=seconds("Wall clock queued", "Wall-clock time in the queue.", **_FROM_FAILURES),
    wall_productive_s=seconds("working", "Wall-clock time of productive work.", **_FROM_FAILURES),
    wall_overhead_s=seconds("lost", "Wall-clock time of checkpoint writes, start-ups and lost work.", **_FROM_FAILURES),
    limit_size=count("Limit", "Smallest size at which the approximations fail.", "they hold", n="rate_failures"),
    check_runs=count("Runs", "Runs of that size.", _NO_TEST, "attempts"),
    check_observed=count("Failures seen", "Failures of runs of the target size.", _NO_TEST, "failures", n="check_runs"),
    check_expected=number("expected", "Failures expected at the rate of the other sizes.", _NO_TEST, n="check_runs"),
    check_p_value=number("p", "Test of equal rates.", _NO_TEST, n="check_runs"),
)
ETTR_CONTOUR = table(
    "ettr_contour",
    "A size of run, an ETTR and a checkpoint interval: the highest failure rate of a node that keeps the ETTR.",
    **_SIZE,
    ettr=share("ETTR", "Effective training time ratio (ETTR) to keep."),
    **_INTERVAL,
    **_HABITS,
    failures_per_1000_node_days=number("per 1,000 node-days", "Highest failure rate of a node.", REASON),
)

# Settings of ETTR that concern runs already done.
RUN_KEYS = ("run_key", "run_at_least_s")

ANALYSIS = Analysis(
    question="What effective training time ratio, and how many interruptions, can a job run of each size expect?",
    theme="large_runs",
    rank=10,
    needs=["durations_infra", "node_failure_rate", "mttf_by_gpus"],
    uses=["training_summary"],
    # Jobs do not run on drives.
    applies=lambda trace: trace.has_jobs or trace.unit in ("node", "GPU"),
    settings={
        "ettr": lambda trace: {key: value for key, value in trace.settings["ettr"].items() if key not in RUN_KEYS},
        "prices": price_settings,
    },
    tables=(ETTR, ETTR_OUTLOOK, MITIGATIONS, TARGET_RUN, ETTR_ASSUMPTIONS, ETTR_CONTOUR),
    charts={
        "ettr_by_gpus": ["ettr", "ettr_outlook", "ettr_assumptions", "node_failure_rate", "mttf_by_gpus"],
        "ettr_contour": ["ettr_contour", "node_failure_rate", "mttf_by_gpus", "ettr_assumptions"],
    },
    main=["ettr_by_gpus"],
    sections=["ettr"],
    in_size_unit=True,
    memory_mb=220,
    mb_per_gb={"pai2020": 20},
)
