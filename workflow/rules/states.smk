# How jobs end and how large they are: the tables by which clusters are usually described.


rule describe_states:
    """Jobs by the state they ended in and by their size, each by number and by GPU time; the summary row of the cluster."""
    input:
        jobs="results/{trace}/jobs.parquet",
        lives="results/{trace}/lives_infra.parquet",
    output:
        **analysis(
            "states",
            traces=JOB_TRACES,
            tables=["states", "size_mix", "cluster_summary"],
            charts=["states", "size_mix"],
        ),
    log:
        "logs/{trace}/describe_states.log",
    benchmark:
        "benchmarks/{trace}/describe_states.tsv"
    wildcard_constraints:
        trace=any_of(JOB_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("describe_states"),
    params:
        *code_of("describe_states"),
        attempts=lambda wildcards: wildcards.trace in ATTEMPT_TRACES,
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/describe_states.py"
