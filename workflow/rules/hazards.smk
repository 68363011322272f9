# Which end comes when and beside which others, whether strata fail alike, what multiplies the hazard, delayed entry.


rule estimate_hazards:
    """Cumulative hazard and incidence, log-rank tests, hazard ratios; survival and time to failure with delayed entry."""
    input:
        lives="results/{trace}/lives.parquet",
    output:
        **analysis(
            "hazards",
            traces=REGISTRY,
            tables=[
                "cumulative_hazard",
                "cumulative_incidence",
                "incidence_at",
                "logrank",
                "cox",
                "survival_summary_delayed_entry",
                "mttf_delayed_entry",
            ],
            charts=["cumulative_incidence", "hazard_ratios"],
        ),
    log:
        "logs/{trace}/estimate_hazards.log",
    benchmark:
        "benchmarks/{trace}/estimate_hazards.tsv"
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("estimate_hazards"),
    params:
        *code_of("estimate_hazards"),
        max_steps=lookup("survival/max_steps", within=config),
        strata=lambda wildcards: strata_of(format_of(wildcards)),
        causes=lambda wildcards: format_of(wildcards).get("causes", []),
        covariates=lambda wildcards: covariates_of(format_of(wildcards)),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/estimate_hazards.py"
