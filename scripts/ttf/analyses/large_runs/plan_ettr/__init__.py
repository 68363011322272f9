"""What is to be expected of a job run at every size?"""

from dataclasses import replace

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, number, reason, seconds, share, table, truth, words

_GPUS = {"gpus": count("GPUs", "GPUs of the run.", blank="sizes are numbers of nodes")}
_NODES = {"nodes": count("Nodes", "Whole nodes that the run takes, rounded up.", blank=REASON)}
_SIZE = _GPUS | _NODES
_NODE_RATE = {
    "failure_rate_per_node_day": number("Failures per node-day", "Rate of one node that is planned with.", blank=REASON)
}
_INTERVAL = {"checkpoint_interval_s": seconds("Checkpoint interval", "Work between two checkpoints.")}
_OTHER_HABITS = {
    "checkpoint_write_s": seconds("Checkpoint write", "How long writing a checkpoint blocks the work."),
    "restart_s": seconds("Start-up", "From being scheduled to working."),
    "queue_s": seconds("Queue", "Mean wait at the submission and after each failure."),
    "productive_s": seconds("Work", "Productive time that the run needs."),
}
_PLAN = _SIZE | _NODE_RATE | _INTERVAL | _OTHER_HABITS
_BOUND = {
    "rate": words(
        "Rate",
        "Which rate: estimate, low, high (of its interval, clustered where it can be), or measured_rate and its ends.",
    )
}
_BEST = {"optimal_interval_s": seconds("Best interval", "Best for long runs, at most the whole work.", blank=REASON)}

_TARGET = {
    "failures": count("Failures", "Behind the failure rate.", "they are not counted", "failures"),
    "of_target": truth("Target", "Whether the run is the one planned for, at the first checkpoint interval."),
    "answers": truth("Answers", "Whether the text answers by the row."),
}
_NO_ENDS = "the row is of an end of the rate, the rate has no lower end, or the column reason says why"
ETTR = table(
    "ettr",
    "A size of run, a checkpoint interval and a failure rate: the expected effective training time ratio (ETTR).",
    **_PLAN,
    mttf_s=seconds("Failure every", "Mean time to failure of the whole run.", blank=REASON),
    ettr_v1=share(
        "ETTR, version 1", "ETTR by the approximation of the paper's first version: free writes.", blank=REASON
    ),
    ettr_v2=share("ETTR, version 2", "ETTR by that of its second version: a long run without queueing.", blank=REASON),
    ettr_combined=share("ETTR, combined", "ETTR by both approximations in one.", blank=REASON),
    ettr_renewal=share(
        "ETTR, exact", "Ratio of the work to the exact mean wall clock of the renewal model.", blank=REASON
    ),
    ettr_ci_low=share("90% from", "Lower end of the exact ETTR: for the error of rate and mean wait.", blank=_NO_ENDS),
    ettr_ci_high=share("90% to", "Upper end of it.", blank=_NO_ENDS),
    ettr_simulated=share(
        "ETTR, simulated", "Ratio of the work to the mean wall clock of simulated runs.", blank=REASON
    ),
    ettr_simulated_se=share("Standard error", "Of the simulated ETTR.", blank=REASON),
    **_BEST,
    **_BOUND,
    approximation_valid=truth("Valid", "Whether failures take at most 0.3 of the scheduled time.", blank=REASON),
    clustered=truth("Clustered", "Whether the interval holds when users and weeks differ."),
    **_TARGET,
)
ETTR_OUTLOOK = table(
    "ettr_outlook",
    "What to expect of each run of the table ettr, in the same order.",
    **_PLAN,
    **_BOUND,
    ettr_long_run=share("ETTR, long run", "What the exact ETTR comes to as the work grows.", blank=REASON),
    expected_interruptions=number("Interruptions", "Mean number of failures until the work is done.", blank=REASON),
    expected_wall_s=seconds("Wall clock", "Mean time from the submission until the work is done.", blank=REASON),
    scheduled_share=share("ETTR of scheduled time", "Work over the time that the nodes are held.", blank=REASON),
    simulated_runs=count("Simulated runs", "Number of runs simulated.", blank=REASON, unit="runs"),
    simulated_interruptions_p05=number("Interruptions, 5%", "5th percentile of simulated runs.", blank=REASON),
    simulated_interruptions_p95=number("Interruptions, 95%", "95th percentile of simulated runs.", blank=REASON),
    simulated_wall_p05_s=seconds("Wall clock, 5%", "5th percentile of simulated runs.", blank=REASON),
    simulated_wall_p95_s=seconds("Wall clock, 95%", "95th percentile of simulated runs.", blank=REASON),
    daly_young_interval_s=seconds("Daly-Young interval", "First approximation of the best interval.", blank=REASON),
    **_BEST,
    ettr_at_optimum=share("ETTR at the best interval", "Exact ETTR with a checkpoint at that interval.", blank=REASON),
    **_TARGET,
)
MITIGATIONS = table(
    "mitigations",
    "A size of run and one change: what it brings. The columns of the plan are those after the change.",
    **_SIZE,
    mitigation=words("Change", "The one thing that is changed.", blank=REASON),
    **_NODE_RATE,
    **{name: replace(column, blank=REASON) for name, column in (_INTERVAL | _OTHER_HABITS).items()},
    ettr_before=share("ETTR before", "Exact ETTR without the change.", blank=REASON),
    ettr_after=share("ETTR after", "Exact ETTR with it.", blank=REASON),
    node_hours_saved_per_productive_week=number(
        "node-hours saved a week of work", "Node-hours less for each week of work.", blank=REASON, unit="node-hours"
    ),
    gpu_hours_saved_per_productive_week=number(
        *("GPU-hours saved a week of work", "The same in GPU-hours."),
        blank="sizes are numbers of nodes, or the column reason says why",
        unit="GPU-hours",
    ),
    of_target=truth("Target", "Whether the run is the one planned for."),
)
ETTR_ASSUMPTIONS = table(
    "ettr_assumptions",
    "An assumption that the plans rest on, and where it is from.",
    assumption=words("What", "The assumption."),
    amount=number("Amount", "Its value.", blank="the failure rate of a node is not known"),
    unit=words("Unit", "Of the amount."),
    n=count("n", "Failures or waits behind it.", blank="it is not estimated from counts"),
    source=words(
        "From", "The trace, the configuration, or the basis on which failures are attributed.", blank="no life ran"
    ),
    reason=reason("Why the failure rate, or the interval of the mean wait, is not known."),
)
_NOT_PLANNED = "no rate can be planned with at this size, or it has no such end"
_OF_TARGET = {"blank": _NOT_PLANNED, "n": "failures"}
_NO_TEST = "there is no test of runs of that size"
TARGET_RUN = table(
    "target_run",
    "The run planned for, at the failure rate that the text answers by.",
    by=words("By", "estimate, the projected rate, else measured_rate, of runs of that size.", _NOT_PLANNED),
    withheld=words("Withheld", "Why the rate is not projected to that size.", "it is projected"),
    needed=words("Needed", "What data it would take.", "it is projected"),
    basis=words("Basis", "On which failures are attributed.", "no life ran", n="rate_failures"),
    unit=words("Unit", "Of the size of the run."),
    queue_source=words("Queue from", "Where the wait is from."),
    no_interval=words("No interval", "Why the ratio has none.", "it has one"),
    rate_failures=count("Failures", "Behind the rate of a node.", "no life ran", "failures"),
    failures=count("Failures", "Behind the rate answered by.", _NOT_PLANNED, "failures"),
    waits=count("Waits", "Behind the mean wait.", "it is configured, or no wait is known"),
    mttf_low_s=seconds("Failure every, from", "At the upper end of the rate.", **_OF_TARGET),
    mttf_high_s=seconds("to", "At the lower end of the rate.", **_OF_TARGET),
    queued_s=seconds("Queued", "A wait at the submission and one after each failure.", _NOT_PLANNED, n="waits"),
    requeue_saved_s=seconds("Saved by requeueing at once", "The waits after failures.", **_OF_TARGET),
    wall_queued_s=seconds("Wall clock queued", "Part of the wall clock.", **_OF_TARGET),
    wall_productive_s=seconds("working", "Part of the wall clock.", **_OF_TARGET),
    wall_overhead_s=seconds("lost", "Part of the wall clock: writes, start-ups and lost work.", **_OF_TARGET),
    limit_size=count("Limit", "Smallest size at which the approximations fail.", "they hold", n="rate_failures"),
    check_runs=count("Runs", "Of that size.", _NO_TEST, "attempts"),
    check_observed=count("Failures seen", "In these.", _NO_TEST, "failures", n="check_runs"),
    check_expected=number("expected", "At the rate of the other sizes.", _NO_TEST, n="check_runs"),
    check_p_value=number("p", "That they are of one rate.", _NO_TEST, n="check_runs"),
)
ETTR_CONTOUR = table(
    "ettr_contour",
    "A size of run, an ETTR and a checkpoint interval: the highest failure rate of a node at which the ETTR is kept.",
    **_SIZE,
    ettr=share("ETTR", "Effective training time ratio (ETTR) to keep."),
    **_INTERVAL,
    **_OTHER_HABITS,
    failures_per_1000_node_days=number("per 1,000 node-days", "Highest failure rate of a node.", blank=REASON),
)

# Of the settings of ETTR those that are of runs already done.
OF_DONE_RUNS = ("run_key", "run_at_least_s")

ANALYSIS = Analysis(
    question="What is to be expected of a job run at every size: its effective training time ratio, its interruptions?",
    theme="large_runs",
    rank=10,
    needs=["lives_infra", "node_failure_rate", "mttf_by_gpus"],
    # No run is on drives.
    applies=lambda trace: trace.has_jobs or trace.unit in ("node", "GPU"),
    settings={
        "ettr": lambda trace: {key: value for key, value in trace.settings["ettr"].items() if key not in OF_DONE_RUNS}
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
