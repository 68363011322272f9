# Which GPUs of which servers were busy when.


rule reconstruct_occupancy:
    """GPUs and servers in use by load and over time, fragmentation, server sharing, and a proxy of why jobs waited."""
    input:
        # Where a placement does not say its GPUs, its attempt says them all.
        unpack(
            lambda wildcards: (
                {"attempts": f"results/{wildcards.trace}/attempts.parquet"}
                if wildcards.trace in ATTEMPT_TRACES
                else {}
            )
        ),
        placements="results/{trace}/placements.parquet",
        jobs="results/{trace}/jobs.parquet",
        nodes="results/{trace}/nodes.parquet",
    output:
        **analysis(
            "occupancy",
            traces=PLACEMENT_TRACES,
            tables=[
                "occupancy",
                "occupancy_basis",
                "fragmentation",
                "load_over_time",
                "server_sharing",
                "delay_causes",
            ],
            charts=["load_over_time", "servers_by_load", "delay_causes"],
        ),
    log:
        "logs/{trace}/reconstruct_occupancy.log",
    benchmark:
        "benchmarks/{trace}/reconstruct_occupancy.tsv"
    wildcard_constraints:
        trace=any_of(PLACEMENT_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("reconstruct_occupancy"),
    params:
        *code_of("reconstruct_occupancy"),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/reconstruct_occupancy.py"
