# What moved from window to window, and what a trace leaves open.
from study.windows import windows_of

try:
    # Trace -> how its drift is measured: `by` windows of the submission, `against` another trace of the study.
    WINDOWS = {
        trace: asked for trace, entry in REGISTRY.items() if (asked := windows_of(trace, entry, JOB_TRACES, PARTS))
    }
except ConfigError as error:
    print(f"error in the configuration\n{error}", file=sys.stderr)
    sys.exit(1)


rule measure_drift:
    """Which shares, medians and failure rates moved between windows of the submission, or against another trace."""
    input:
        # Of the trace that this one is measured against, if there is one.
        unpack(
            lambda wildcards: (
                {"against": f"results/{WINDOWS[wildcards.trace]['against']}/jobs.parquet"}
                if "against" in WINDOWS[wildcards.trace]
                else {}
            )
        ),
        jobs="results/{trace}/jobs.parquet",
    output:
        **analysis("drift", traces=WINDOWS, tables=["drift"], charts=["drift"]),
    log:
        "logs/{trace}/measure_drift.log",
    benchmark:
        "benchmarks/{trace}/measure_drift.tsv"
    wildcard_constraints:
        trace=any_of(WINDOWS),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("measure_drift"),
    params:
        *code_of("measure_drift"),
        windows=lambda wildcards: WINDOWS[wildcards.trace],
        parts=lambda wildcards: list(PARTS.get(wildcards.trace, {})),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/measure_drift.py"


rule check_philly:
    """What the Philly trace leaves open: whether its log can be of the zone assumed, and how far its machine list is wrong."""
    input:
        jobs="results/{trace}/jobs.parquet",
        nodes="results/{trace}/nodes.parquet",
    output:
        **analysis("philly_checks", traces=traces_with_format("philly"), tables=["zone_evidence", "listed_machines"]),
    log:
        "logs/{trace}/check_philly.log",
    benchmark:
        "benchmarks/{trace}/check_philly.tsv"
    wildcard_constraints:
        trace=any_of(traces_with_format("philly")),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("check_philly"),
    params:
        *code_of("check_philly"),
    script:
        "../../scripts/check_philly.py"
