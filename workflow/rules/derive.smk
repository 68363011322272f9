# Typed raw tables -> jobs with run times -> jobs by outcome, and lives.


rule derive_share:
    """A share of the jobs of a large trace: what its other tables say of each task, and its tasks of each instance."""
    input:
        raw="results/{trace}/raw",
    output:
        temp(directory("results/{trace}/shares/{share}")),
    log:
        "logs/{trace}/derive_share/{share}.log",
    benchmark:
        "benchmarks/{trace}/derive_share/{share}.tsv"
    wildcard_constraints:
        trace=any_of(SHARES),
        share="[0-9]+",
    group:
        "parts"
    conda:
        "../../environment.yml"
    threads: 2
    resources:
        **asks_for("derive_share"),
        partition_rows=config["scatter"]["partition_rows"],
        shares=lambda wildcards: len(SHARES[wildcards.trace]),
    params:
        *code_of("derive_share", by_trace=format_module_of),
        code=lambda wildcards: format_of(wildcards)["code"],
        tables=lambda wildcards: list(RAW_TABLES[wildcards.trace]),
    script:
        "../../scripts/derive_share.py"


rule derive_runtimes:
    """The common job record: start, end, run time, queueing delay, outcome and requests of every job."""
    input:
        raw="results/{trace}/raw",
        shares=shares_of_work,
    output:
        jobs="results/{trace}/jobs.parquet",
        nodes="results/{trace}/nodes.parquet",
        agreement="results/{trace}/tables/runtime_agreement.csv",
    log:
        "logs/{trace}/derive_runtimes.log",
    benchmark:
        "benchmarks/{trace}/derive_runtimes.tsv"
    wildcard_constraints:
        trace=any_of([trace for trace in JOB_TRACES if trace not in ATTEMPT_TRACES]),
    conda:
        "../../environment.yml"
    threads: threads_by_size(8)
    resources:
        **asks_for("derive_runtimes"),
        # No parameter: how the rows are divided is no part of what they say.
        partition_rows=config["scatter"]["partition_rows"],
    params:
        *code_of("derive_runtimes", by_trace=format_module_of),
        code=lambda wildcards: format_of(wildcards)["code"],
        meaning=lambda wildcards: meaning_of(REGISTRY[wildcards.trace], format_of(wildcards)),
        node_table=lambda wildcards: format_of(wildcards).get("node_table"),
        parts=lambda wildcards: list(PARTS.get(wildcards.trace, {})),
        tables=lambda wildcards: list(RAW_TABLES[wildcards.trace]),
    script:
        "../../scripts/derive_runtimes.py"


rule derive_attempts:
    """The same where a format tells attempts apart, with every try at a job, in sequence, and the machines it was on."""
    input:
        raw="results/{trace}/raw",
    output:
        jobs="results/{trace}/jobs.parquet",
        attempts="results/{trace}/attempts.parquet",
        placements="results/{trace}/placements.parquet",
        nodes="results/{trace}/nodes.parquet",
        agreement="results/{trace}/tables/runtime_agreement.csv",
    log:
        "logs/{trace}/derive_attempts.log",
    benchmark:
        "benchmarks/{trace}/derive_attempts.tsv"
    wildcard_constraints:
        trace=any_of(ATTEMPT_TRACES),
    conda:
        "../../environment.yml"
    threads: threads_by_size(8)
    resources:
        **asks_for("derive_attempts"),
    params:
        *code_of("derive_attempts", by_trace=format_module_of),
        code=lambda wildcards: format_of(wildcards)["code"],
        meaning=lambda wildcards: meaning_of(REGISTRY[wildcards.trace], format_of(wildcards)),
        node_table=lambda wildcards: format_of(wildcards).get("node_table"),
        parts=lambda wildcards: list(PARTS.get(wildcards.trace, {})),
        tables=lambda wildcards: list(RAW_TABLES[wildcards.trace]),
    script:
        "../../scripts/derive_attempts.py"


rule derive_placements:
    """Every part of an attempt on one machine, where the format says which machines it was on."""
    input:
        raw="results/{trace}/raw",
        shares=shares_of_work,
    output:
        placements="results/{trace}/placements.parquet",
    log:
        "logs/{trace}/derive_placements.log",
    benchmark:
        "benchmarks/{trace}/derive_placements.tsv"
    wildcard_constraints:
        trace=any_of([trace for trace in PLACEMENT_TRACES if trace not in ATTEMPT_TRACES]),
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("derive_placements"),
        # No parameter: how the rows are divided is no part of what they say.
        partition_rows=config["scatter"]["partition_rows"],
    params:
        *code_of("derive_placements", by_trace=format_module_of),
        code=lambda wildcards: format_of(wildcards)["code"],
        tables=lambda wildcards: list(RAW_TABLES[wildcards.trace]),
    script:
        "../../scripts/derive_placements.py"


rule split_outcomes:
    """Every job into one of success, failure, cancelled and unresolved (all others); totals by outcome."""
    input:
        jobs="results/{trace}/jobs.parquet",
    output:
        success="results/{trace}/success.parquet",
        failure="results/{trace}/failure.parquet",
        unresolved="results/{trace}/unresolved.parquet",
        cancelled="results/{trace}/cancelled.parquet",
        outcomes=in_report("results/{trace}/tables/outcomes.csv", "table"),
        outcomes_gpu="results/{trace}/tables/outcomes_gpu.csv",
        quantiles="results/{trace}/tables/runtime_quantiles.csv",
    log:
        "logs/{trace}/split_outcomes.log",
    benchmark:
        "benchmarks/{trace}/split_outcomes.tsv"
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("split_outcomes"),
    params:
        *code_of("split_outcomes"),
        words=lambda wildcards: sum(status_words(REGISTRY[wildcards.trace], format_of(wildcards)).values(), []),
    script:
        "../../scripts/split_outcomes.py"


rule derive_lives:
    """Exposure with its duration and the event that ended it, censored where none did: of jobs, or of components."""
    input:
        branch(lambda wildcards: wildcards.trace in JOB_TRACES, "results/{trace}/jobs.parquet", "results/{trace}/raw"),
    output:
        lives="results/{trace}/lives.parquet",
    log:
        "logs/{trace}/derive_lives.log",
    benchmark:
        "benchmarks/{trace}/derive_lives.tsv"
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("derive_lives"),
    params:
        *code_of("derive_lives", by_trace=format_module_of),
        code=lambda wildcards: format_of(wildcards)["code"],
        gives=lambda wildcards: format_of(wildcards)["gives"],
        tables=lambda wildcards: list(RAW_TABLES[wildcards.trace]),
    script:
        "../../scripts/derive_lives.py"


rule derive_infra_lives:
    """A life per attempt, ended where hardware or system software ended it: a requeued job hides no node failure."""
    input:
        unpack(sources_of_infra_lives),
    output:
        lives="results/{trace}/lives_infra.parquet",
    log:
        "logs/{trace}/derive_infra_lives.log",
    benchmark:
        "benchmarks/{trace}/derive_infra_lives.tsv"
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("derive_infra_lives"),
    params:
        *code_of("derive_infra_lives"),
        rules=lambda wildcards: infra_failures_of(
            REGISTRY[wildcards.trace], config["infra_failures"], format_of(wildcards)
        ),
        causes=lambda wildcards: format_of(wildcards).get("causes", []),
    script:
        "../../scripts/derive_infra_lives.py"
