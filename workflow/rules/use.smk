# What was made of the machines: how busy GPUs and hosts were, and at which epoch training came to its lowest loss.

TELEMETRY = ("gpu_util", "cpu_util", "mem_util")


rule measure_use:
    """GPU use by job size, outcome and servers, and CPU and memory of the hosts, from telemetry by the minute."""
    input:
        raw="results/{trace}/raw",
    output:
        **analysis(
            "utilisation",
            traces=[trace for trace in traces_with_format("philly") if set(TELEMETRY) & RAW_TABLES[trace].keys()],
            tables=["gpu_use", "host_use"],
            charts=["gpu_use", "gpu_use_by_servers", "host_use"],
        ),
    log:
        "logs/{trace}/measure_use.log",
    benchmark:
        "benchmarks/{trace}/measure_use.tsv"
    wildcard_constraints:
        trace=any_of(ANALYSES["utilisation"]["traces"]),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("measure_use"),
    params:
        *code_of("measure_use"),
        tables=lambda wildcards: ["job_log", *(name for name in TELEMETRY if name in RAW_TABLES[wildcards.trace])],
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/measure_use.py"


rule measure_epochs:
    """By which of its epochs a job came to its lowest loss, and what it spent on the last 0.1 % of it."""
    input:
        losses=lambda wildcards: source_file(LOSS_LOGS[wildcards.trace]),
        jobs="results/{trace}/jobs.parquet",
    output:
        **analysis("epochs", traces=LOSS_LOGS, tables=["epochs", "epochs_summary"], charts=["epochs"]),
    log:
        "logs/{trace}/measure_epochs.log",
    benchmark:
        "benchmarks/{trace}/measure_epochs.tsv"
    wildcard_constraints:
        trace=any_of(LOSS_LOGS),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("measure_epochs"),
    params:
        *code_of("measure_epochs"),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/measure_epochs.py"
