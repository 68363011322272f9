# Why jobs fail: rules on log tails, reasons, exit codes and states give each failed attempt a reason.
from study.taxonomy import taxonomy_of, tells_reasons

try:
    TAXONOMY = taxonomy_of(ROOT / "config" / "taxonomy.yaml", config["taxonomy"])
    # A trace of which nothing tells a reason has no taxonomy.
    REASON_TRACES = [
        trace for trace, entry in REGISTRY.items() if tells_reasons(trace, entry, FORMATS[entry["format"]], TAXONOMY)
    ]
except ConfigError as error:
    print(f"error in the configuration\n{error}", file=sys.stderr)
    sys.exit(1)


rule classify_failures:
    """The reason, domain and cost of failures, as far as text, reasons, exit codes or states tell them."""
    input:
        unpack(
            lambda wildcards: (
                {"attempts": "results/{trace}/attempts.parquet"} if wildcards.trace in ATTEMPT_TRACES else {}
            )
        ),
        unpack(
            lambda wildcards: {
                key: source_file(REGISTRY[wildcards.trace][key])
                for key in ["log_tails"]
                if key in REGISTRY[wildcards.trace]
            }
        ),
        jobs="results/{trace}/jobs.parquet",
    output:
        **analysis(
            "taxonomy",
            traces=REASON_TRACES,
            tables=["taxonomy", "unmatched", "log_tails"],
            charts=["taxonomy"],
            frames=["reasons"],
        ),
    log:
        "logs/{trace}/classify_failures.log",
    benchmark:
        "benchmarks/{trace}/classify_failures.tsv"
    wildcard_constraints:
        trace=any_of(REASON_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("classify_failures"),
    params:
        *code_of("classify_failures"),
        taxonomy=TAXONOMY,
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/classify_failures.py"
