# What failures cost: GPU time lost, by size and by month; whose failures they are; what would have saved some of it.


rule measure_losses:
    """Work lost to failures and in failed runs, failures per owner, how they repeat, and two what-ifs."""
    input:
        unpack(
            lambda wildcards: (
                {"attempts": "results/{trace}/attempts.parquet"} if wildcards.trace in ATTEMPT_TRACES else {}
            )
        ),
        # Which failures would come again.
        unpack(
            lambda wildcards: (
                {"reasons": "results/{trace}/reasons.parquet"} if wildcards.trace in REASON_TRACES else {}
            )
        ),
        jobs="results/{trace}/jobs.parquet",
        infra_lives="results/{trace}/lives_infra.parquet",
    output:
        **analysis(
            "lost_work",
            traces=JOB_TRACES,
            tables=[
                "lost_work",
                "lost_work_by_month",
                "failures_by_owner",
                "failure_concentration",
                "repeats",
                "what_if",
            ],
            charts=["lost_work", "failure_concentration", "what_if"],
        ),
    log:
        "logs/{trace}/measure_losses.log",
    benchmark:
        "benchmarks/{trace}/measure_losses.tsv"
    wildcard_constraints:
        trace=any_of(JOB_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("measure_losses"),
    params:
        *code_of("measure_losses"),
        settings=lookup("lost_work", within=config),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/measure_losses.py"
