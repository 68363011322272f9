# Nodes to pull first.

# Traces that say where their jobs ran, and those whose units are nodes.
LEMON_TRACES = PLACEMENT_TRACES + [trace for trace in LIFE_TRACES if trace in traces_with("unit", "node")]


rule find_lemon_nodes:
    """Nodes on which more fails than their use explains, at a stated false-discovery rate; the fleet without them."""
    input:
        # Of components the lives say it all.
        unpack(
            lambda wildcards: (
                {"placements": f"results/{wildcards.trace}/placements.parquet"}
                if wildcards.trace in PLACEMENT_TRACES
                else {}
            )
        ),
        lives="results/{trace}/lives_infra.parquet",
    output:
        **analysis(
            "lemons",
            traces=LEMON_TRACES,
            tables=["lemon_nodes", "lemon_effect"],
            charts=["lemons", "lemon_signals"],
        ),
    log:
        "logs/{trace}/find_lemon_nodes.log",
    benchmark:
        "benchmarks/{trace}/find_lemon_nodes.tsv"
    wildcard_constraints:
        trace=any_of(LEMON_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("find_lemon_nodes"),
    params:
        *code_of("find_lemon_nodes"),
        window_days=lookup("lemons/window_days", within=config),
        infra_window_days=lookup("lemons/infra_window_days", within=config),
        false_discovery=lookup("lemons/false_discovery", within=config),
        fleet_by=lambda wildcards: strata_of(format_of(wildcards))[0],
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/find_lemon_nodes.py"
