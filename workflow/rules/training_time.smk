# Effective training time: what failures, checkpoints, start-ups and the queue leave of a job run's time.

HABITS = ["checkpoint_intervals_s", "checkpoint_write_s", "restart_s", "productive_s"]
PLAN_SETTINGS = [*HABITS, "queue_s", "gpus", "run_gpus", "simulations", "seed"]
RUN_SETTINGS = [*HABITS, "run_key", "run_at_least_s"]


rule plan_ettr:
    """What to expect of a job run at every size: effective training time, interruptions, the best checkpoint interval."""
    input:
        # Whose waits are planned with; components have none.
        lives="results/{trace}/lives_infra.parquet",
        rate="results/{trace}/tables/node_failure_rate.csv",
        by_gpus="results/{trace}/tables/mttf_by_gpus.csv",
    output:
        **analysis(
            "ettr",
            traces=config["study"],
            tables=["ettr", "ettr_outlook", "mitigations", "ettr_assumptions", "ettr_contour"],
            charts=["ettr_by_gpus", "ettr_contour", "ettr_planner"],
        ),
    log:
        "logs/{trace}/plan_ettr.log",
    benchmark:
        "benchmarks/{trace}/plan_ettr.tsv"
    group:
        "analyses"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("plan_ettr"),
    params:
        *code_of("plan_ettr"),
        ettr=settings_of("ettr", *PLAN_SETTINGS),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/plan_ettr.py"


rule measure_ettr:
    """Effective training time of the job runs that a trace tells the attempts of, by size, beside the expected one."""
    input:
        jobs="results/{trace}/jobs.parquet",
        lives="results/{trace}/lives_infra.parquet",
        rate="results/{trace}/tables/node_failure_rate.csv",
        by_gpus="results/{trace}/tables/mttf_by_gpus.csv",
    output:
        **analysis("ettr_measured", traces=ATTEMPT_TRACES, tables=["ettr_measured"], charts=["ettr_measured"]),
    log:
        "logs/{trace}/measure_ettr.log",
    benchmark:
        "benchmarks/{trace}/measure_ettr.tsv"
    wildcard_constraints:
        trace=any_of(ATTEMPT_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("measure_ettr"),
    params:
        *code_of("measure_ettr"),
        ettr=settings_of("ettr", *RUN_SETTINGS),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/measure_ettr.py"


rule recompute_ettr:
    """What the paper on which this rests states about effective training time, and what the formulas here give."""
    output:
        reference="results/ettr_reference.csv",
    log:
        "logs/recompute_ettr.log",
    benchmark:
        "benchmarks/recompute_ettr.tsv"
    group:
        "report"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("recompute_ettr"),
    params:
        *code_of("recompute_ettr"),
    script:
        "../../scripts/recompute_ettr.py"
