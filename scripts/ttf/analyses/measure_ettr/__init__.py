"""What did the time of job runs go into, beside what the model expects?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, table

ETTR_MEASURED = table(
    "ettr_measured",
    "TODO",
    gpus_low=count("Gpus low", "TODO"),
    gpus_high=count("Gpus high", "TODO"),
    runs=count("Runs", "TODO"),
    attempts=count("Attempts", "TODO"),
    interruptions=count("Interruptions", "TODO"),
    ettr_mean=number("Ettr mean", "TODO"),
    ci_low=number("Ci low", "TODO"),
    ci_high=number("Ci high", "TODO"),
    ettr_if_all_interrupted_mean=number("Ettr if all interrupted mean", "TODO"),
    expected_ettr=number("Expected ettr", "TODO", blank="TODO"),
    reason=reason(),
)

READ = ("checkpoint_intervals_s", "checkpoint_write_s", "restart_s", "productive_s", "run_key", "run_at_least_s")

ANALYSIS = Analysis(
    question="What did the time of job runs go into, beside what the model expects?",
    theme="training",
    rank=20,
    needs=["jobs", "lives_infra", "node_failure_rate", "mttf_by_gpus"],
    applies=lambda trace: "attempts" in trace.products,
    settings={"ettr": lambda trace: {key: trace.settings["ettr"][key] for key in READ}},
    tables=(ETTR_MEASURED,),
    charts={"ettr_measured": "ettr_measured"},
    memory_mb=200,
    mb_per_gb={"sacct": 5490},
)
