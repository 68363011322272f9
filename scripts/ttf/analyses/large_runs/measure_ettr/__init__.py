"""How much time of job runs was productive, and how much does the model expect?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns
from ttf.engine.contract import REASON, count, seconds, share, table, truth

_NO_RUNS = "there is no run"
ETTR_MEASURED = table(
    "ettr_measured",
    "A range of GPUs and the job runs of that size: their effective training time ratio (ETTR).",
    gpus_low=count("GPUs from", "Fewest GPUs of the range."),
    gpus_high=count("GPUs to", "Most GPUs of the range."),
    runs=count("Runs", "Runs; a run is all attempts at the same work.", unit="runs"),
    attempts=count("Attempts", "Attempts of the runs of the row.", unit="attempts"),
    interruptions=count("Interruptions", "Attempts followed by another one, or ended by infrastructure."),
    ettr_mean=share("Wall-clock ETTR", "Mean over runs of productive time divided by run time plus wait."),
    ci_low=share("Interval from", "Lower bound of Student's 95% CI of the mean.", REASON),
    ci_high=share("Interval to", "Upper bound of Student's 95% CI of the mean.", REASON),
    **clustered_columns(share),
    ettr_if_all_interrupted_mean=share("ETTR, all interrupted", "Mean ETTR if every attempt had been interrupted."),
    expected_ettr=share("ETTR, expected", "Mean ETTR of these runs expected by the exact model.", REASON),
)
ETTR_MEASURED_ALL = table(
    "ettr_measured_all",
    "The runs of all sizes together.",
    runs=count("Runs", "Number of runs.", unit="runs"),
    interruptions=count("Interruptions", "Interruptions of all runs.", _NO_RUNS, "interruptions", n="runs"),
    mean=share("Wall-clock ETTR", "Mean measured ETTR of the runs.", _NO_RUNS, n="runs"),
    expected=share(
        "ETTR, expected", "Mean ETTR expected by the exact model.", f"{_NO_RUNS}, or unknown for some size", n="runs"
    ),
    if_all_interrupted=share(
        "ETTR, all interrupted", "Mean ETTR if every attempt had been interrupted.", _NO_RUNS, n="runs"
    ),
)
ETTR_MEASURED_TARGET = table(
    "ettr_measured_target",
    "The long runs in the size range of the planned run, and the model of it, without the queue; no row without runs.",
    gpus_low=count("GPUs from", "Fewest GPUs of the range."),
    gpus_high=count("GPUs to", "Most GPUs of the range."),
    runs=count("Runs", "Job runs of that size.", unit="runs"),
    queue_s=seconds("Queue", "Mean wait of these runs before each attempt.", n="runs"),
    scheduled_ettr=share("Scheduled ETTR", "Mean over runs of productive time divided by run time.", n="runs"),
    ci_low=share("Interval from", "Lower bound of Student's 95% CI of the mean.", REASON, n="runs"),
    ci_high=share("Interval to", "Upper bound of Student's 95% CI of the mean.", REASON, n="runs"),
    **clustered_columns(share),
    expected=share("Expected", "Mean of the exact model over the same runs.", REASON, n="runs"),
    expected_low=share(
        "Expected from", "Mean of the exact model at the upper bound of the failure rate.", REASON, n="runs"
    ),
    expected_high=share(
        "Expected to", "Mean of the exact model at the lower bound of the failure rate.", REASON, n="runs"
    ),
    differs=truth("Differs", "Whether the clustered and the expected interval do not overlap.", REASON),
)

SETTINGS = (
    *("checkpoint_intervals_s", "checkpoint_write_s", "restart_s", "productive_s"),
    *("run_key", "run_at_least_s", "target_gpus"),
)

ANALYSIS = Analysis(
    question="How much time of job runs was productive, and how much does the model expect?",
    theme="large_runs",
    rank=20,
    needs=["jobs", "durations_infra", "node_failure_rate", "mttf_by_gpus"],
    applies=lambda trace: "attempts" in trace.products,
    settings={"ettr": lambda trace: {key: trace.settings["ettr"][key] for key in SETTINGS}},
    tables=(ETTR_MEASURED, ETTR_MEASURED_ALL, ETTR_MEASURED_TARGET),
    charts={"ettr_measured": "ettr_measured"},
    main=["ettr_measured"],
    in_size_unit=True,
    memory_mb=250,
    mb_per_gb={"sacct": 5490},
)
