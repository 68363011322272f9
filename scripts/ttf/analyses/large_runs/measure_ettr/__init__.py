"""What did the time of job runs go into, beside what the model expects?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered
from ttf.engine.contract import REASON, count, share, table

_NO_RUNS = "there is no run"
ETTR_MEASURED = table(
    "ettr_measured",
    "A range of GPUs and the job runs of that size: their effective training time ratio (ETTR).",
    gpus_low=count("GPUs from", "Fewest GPUs of the range."),
    gpus_high=count("GPUs to", "Most GPUs of the range."),
    runs=count("Runs", "Job runs: attempts that work on the same thing.", unit="runs"),
    attempts=count("Attempts", "Attempts of these runs.", unit="attempts"),
    interruptions=count("Interruptions", "Attempts that another one follows, or that infrastructure ended."),
    ettr_mean=share("ETTR, measured", "Mean over the runs of the productive time over the time run and waited."),
    ci_low=share("Interval from", "Lower end of Student's 95% CI of the mean.", blank=REASON),
    ci_high=share("Interval to", "Its upper end.", blank=REASON),
    **clustered(share),
    ettr_if_all_interrupted_mean=share("ETTR, all interrupted", "The mean, if every attempt had been interrupted."),
    expected_ettr=share("ETTR, expected", "Mean of the exact model over the same runs.", blank=REASON),
)
ETTR_MEASURED_ALL = table(
    "ettr_measured_all",
    "The runs of all sizes together.",
    runs=count("Runs", "Job runs.", unit="runs"),
    interruptions=count("Interruptions", "Of them.", _NO_RUNS, "interruptions", n="runs"),
    mean=share("ETTR, measured", "Mean over the runs.", _NO_RUNS, n="runs"),
    expected=share("ETTR, expected", "Mean of the exact model.", f"{_NO_RUNS}, or it is not known of a size", n="runs"),
    if_all_interrupted=share("ETTR, all interrupted", "The mean, if every attempt had been.", _NO_RUNS, n="runs"),
)

READ = ("checkpoint_intervals_s", "checkpoint_write_s", "restart_s", "productive_s", "run_key", "run_at_least_s")

ANALYSIS = Analysis(
    question="What did the time of job runs go into, beside what the model expects?",
    theme="large_runs",
    rank=20,
    needs=["jobs", "lives_infra", "node_failure_rate", "mttf_by_gpus"],
    applies=lambda trace: "attempts" in trace.products,
    settings={"ettr": lambda trace: {key: trace.settings["ettr"][key] for key in READ}},
    tables=(ETTR_MEASURED, ETTR_MEASURED_ALL),
    charts={"ettr_measured": "ettr_measured"},
    main=["ettr_measured"],
    in_size_unit=True,
    memory_mb=250,
    mb_per_gb={"sacct": 5490},
)
