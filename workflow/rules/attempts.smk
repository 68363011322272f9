# How long attempts wait, how often jobs are tried, and how long an attempt runs until it fails.


rule describe_attempts:
    """Queueing delays of first and later attempts, retries, run time to failure, overtaking; outcomes in a window."""
    input:
        jobs="results/{trace}/jobs.parquet",
        attempts="results/{trace}/attempts.parquet",
    output:
        **analysis(
            "queueing",
            traces=ATTEMPT_TRACES,
            tables=[
                "delays",
                "delay_by_nodes",
                "out_of_order",
                "retries",
                "runtime_to_failure",
                "failed_attempts",
                "outcomes_window",
            ],
            charts=[
                "delay_first_later",
                "long_delays_by_account",
                "delay_by_nodes",
                "retries_by_gpus",
                "unsuccessful_by_gpus",
                "runtime_to_failure",
            ],
        ),
    log:
        "logs/{trace}/describe_attempts.log",
    benchmark:
        "benchmarks/{trace}/describe_attempts.tsv"
    wildcard_constraints:
        trace=any_of(ATTEMPT_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("describe_attempts"),
    params:
        *code_of("describe_attempts"),
        window=lambda wildcards: window_of(REGISTRY[wildcards.trace]),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/describe_attempts.py"
