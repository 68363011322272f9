# What goes with run time and failure; how long lives last; the charts and numbers of the report.


rule correlate:
    """Failure share by feature value, mean run time by feature value, and their correlations."""
    input:
        jobs="results/{trace}/jobs.parquet",
    output:
        failure_share=in_report("results/{trace}/tables/failure_share.csv", "table"),
        runtime_by_group="results/{trace}/tables/runtime_by_group.csv",
        correlations=in_report("results/{trace}/tables/correlations.csv", "table"),
    log:
        "logs/{trace}/correlate.log",
    benchmark:
        "benchmarks/{trace}/correlate.tsv"
    wildcard_constraints:
        trace=any_of(JOB_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("correlate"),
    params:
        *code_of("correlate"),
        cutoffs_s=lookup("correlation/cutoffs_s", within=config),
        significance=lookup("correlation/significance", within=config),
    script:
        "../../scripts/correlate.py"


rule describe_workload:
    """Run times and delays by kind of job, when it was submitted and what for, what was asked for and what was used."""
    input:
        unpack(tables_beside_jobs),
        jobs="results/{trace}/jobs.parquet",
        nodes="results/{trace}/nodes.parquet",
    output:
        **analysis(
            "workload",
            traces=JOB_TRACES,
            tables=[
                "percentiles",
                "gpu_requests",
                "request_use",
                "recurrence",
                "submissions",
                "roles",
                "activity",
                "gangs",
                "request_percentiles",
                "wait_share",
                "machines",
                "job_status",
                "machine_load",
            ],
            charts=[
                "runtime_by_gpus",
                "queue_by_gpus",
                "queue_by_gpu_type",
                "queue_by_gpu_request",
                "queue_by_account",
                "request_use",
                "submissions",
                "roles",
                "machine_load",
            ],
        ),
    log:
        "logs/{trace}/describe_workload.log",
    benchmark:
        "benchmarks/{trace}/describe_workload.tsv"
    wildcard_constraints:
        trace=any_of(JOB_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("describe_workload"),
    params:
        *code_of("describe_workload"),
        zone=clock_of,
        tables=lambda wildcards: sorted({"job", "machine_metric", "machine_spec"} & set(RAW_TABLES[wildcards.trace])),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/describe_workload.py"


rule fit_mttf:
    """Survival curves, mean time to failure with exact intervals, and lifetime models, from lives alone."""
    input:
        lives="results/{trace}/lives.parquet",
    output:
        survival="results/{trace}/tables/survival.csv",
        curves="results/{trace}/tables/survival.parquet",
        summary=in_report("results/{trace}/tables/survival_summary.csv", "table"),
        mttf=in_report("results/{trace}/tables/mttf.csv", "table"),
        without_end="results/{trace}/tables/failures_without_end.csv",
        models=in_report("results/{trace}/tables/lifetime_models.csv", "table"),
    log:
        "logs/{trace}/fit_mttf.log",
    benchmark:
        "benchmarks/{trace}/fit_mttf.tsv"
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("fit_mttf"),
    params:
        *code_of("fit_mttf"),
        max_steps=lookup("survival/max_steps", within=config),
        strata=lambda wildcards: strata_of(format_of(wildcards)),
        causes=lambda wildcards: format_of(wildcards).get("causes", []),
    script:
        "../../scripts/fit_mttf.py"


rule judge_lifetimes:
    """Whether the failure rate falls, stays or rises with age, where a constant one misleads, a probability plot per model."""
    input:
        curves="results/{trace}/tables/survival.parquet",
        models="results/{trace}/tables/lifetime_models.csv",
    output:
        **analysis(
            "lifetimes",
            traces=config["study"],
            tables=["lifetime_verdict"],
            charts=["probability_plots", "probability_plots_by_stratum"],
        ),
    log:
        "logs/{trace}/judge_lifetimes.log",
    benchmark:
        "benchmarks/{trace}/judge_lifetimes.tsv"
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("judge_lifetimes"),
    params:
        *code_of("judge_lifetimes"),
        stratum_by=lambda wildcards: strata_of(format_of(wildcards))[0],
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/judge_lifetimes.py"


# In the order of the report. A chart that a trace has nothing to draw in says so in index.json, and the report leaves it
# out. *_log: the same with a logarithmic axis of the request.
CHARTS = [
    "outcome_shares",
    "runtime_distribution",
    "runtime_by_gpu_type",
    "runtime_by_gpu_request",
    "runtime_by_gpu_request_log",
    "runtime_by_cpu_request",
    "runtime_by_cpu_request_log",
    "runtime_by_memory_request",
    "runtime_by_memory_request_log",
    "runtime_by_size",
    "runtime_by_size_log",
    "runtime_by_measured_use",
    "runtime_by_measured_use_log",
    "failure_share",
    "survival",
    "survival_by_gpu_type",
    "survival_by_gpu_count",
    "mttf_by_gpu_type",
    "mttf_by_gpu_count",
]

TABLES_OF_LIVES = dict(
    survival="results/{trace}/tables/survival.csv",
    summary="results/{trace}/tables/survival_summary.csv",
    mttf="results/{trace}/tables/mttf.csv",
)
TABLES_OF_CHARTS = TABLES_OF_LIVES | dict(
    outcomes="results/{trace}/tables/outcomes.csv",
    quantiles="results/{trace}/tables/runtime_quantiles.csv",
    failure_share="results/{trace}/tables/failure_share.csv",
    runtime_by_group="results/{trace}/tables/runtime_by_group.csv",
    correlations="results/{trace}/tables/correlations.csv",
)


rule draw_charts:
    """Every chart of the report, as Vega-Lite JSON, from the tables alone."""
    input:
        **TABLES_OF_CHARTS,
    output:
        index="results/{trace}/figures/index.json",
        specs=collect("results/{{trace}}/figures/{name}.vl.json", name=CHARTS),
    log:
        "logs/{trace}/draw_charts.log",
    benchmark:
        "benchmarks/{trace}/draw_charts.tsv"
    wildcard_constraints:
        trace=any_of(JOB_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("draw_charts"),
    params:
        *code_of("draw_charts"),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/draw_charts.py"


# Which charts a component trace has depends on its strata, so each such format has a rule of its own.
for life_format in LIFE_FORMATS:

    rule:
        name:
            f"draw_charts_{life_format}"
        input:
            **TABLES_OF_LIVES,
        output:
            index="results/{trace}/figures/index.json",
            specs=collect("results/{{trace}}/figures/{name}.vl.json", name=charts_of_lives(life_format)),
        log:
            "logs/{trace}/draw_charts.log",
        benchmark:
            "benchmarks/{trace}/draw_charts.tsv"
        wildcard_constraints:
            trace=any_of(traces_with_format(life_format)),
        group:
            "analyses"
        conda:
            "../../environment.yml"
        resources:
            **asks_for("draw_charts"),
        params:
            *code_of("draw_charts"),
            unit=FORMATS[life_format]["unit"],
            synthetic=False,
        script:
            "../../scripts/draw_charts.py"


rule measure_sizes:
    """Mean time to failure at every job size, the failure rate of a node, also over time, its projection, the 1/N law."""
    input:
        unpack(lambda wildcards: ({"nodes": "results/{trace}/nodes.parquet"} if wildcards.trace in JOB_TRACES else {})),
        # By whose domains failures are told apart where nothing else does.
        unpack(
            lambda wildcards: (
                {"reasons": "results/{trace}/reasons.parquet"} if wildcards.trace in REASON_TRACES else {}
            )
        ),
        lives="results/{trace}/lives_infra.parquet",
    output:
        **analysis(
            "sizes",
            traces=REGISTRY,
            tables=[
                "mttf_by_gpus",
                "node_failure_rate",
                "size_law",
                "survival_summary_infra",
                "mttf_infra",
                "failure_rate_over_time",
            ],
            charts=["mttf_by_gpus", "failure_rate_over_time"],
        ),
    log:
        "logs/{trace}/measure_sizes.log",
    benchmark:
        "benchmarks/{trace}/measure_sizes.tsv"
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("measure_sizes"),
    params:
        *code_of("measure_sizes"),
        gives=lambda wildcards: format_of(wildcards)["gives"],
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
        strata=lambda wildcards: strata_of(format_of(wildcards)),
        node_gpus=lambda wildcards: REGISTRY[wildcards.trace].get("node_gpus"),
        above_gpus=lookup("sizes/above_gpus", within=config),
    script:
        "../../scripts/measure_sizes.py"


rule ask_again:
    """The questions of study 1 by its own recipe, and beside them asked well: jobs, real failures, censoring."""
    input:
        jobs="results/{trace}/jobs.parquet",
        correlations="results/{trace}/tables/correlations.csv",
        runtime_by_group="results/{trace}/tables/runtime_by_group.csv",
        mttf="results/{trace}/tables/mttf.csv",
    output:
        **analysis("study1", traces=JOB_TRACES, tables=["study1"], charts=["study1_asked_twice"]),
    log:
        "logs/{trace}/ask_again.log",
    benchmark:
        "benchmarks/{trace}/ask_again.tsv"
    wildcard_constraints:
        trace=any_of(JOB_TRACES),
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("ask_again"),
    params:
        *code_of("ask_again"),
        significance=lookup("correlation/significance", within=config),
        unit=lambda wildcards: format_of(wildcards)["unit"],
        synthetic=lambda wildcards: wildcards.trace in GENERATED,
    script:
        "../../scripts/ask_again.py"


rule summarise:
    """Every number that the report's prose uses, with its unit, n and source table."""
    input:
        unpack(tables_of_summary),
        account="results/{trace}/quality/row_account.csv",
        anomalies="results/{trace}/quality/anomalies.csv",
        statistics="results/{trace}/quality/statistics.csv",
        validation="results/{trace}/quality/validation.csv",
        without_end="results/{trace}/tables/failures_without_end.csv",
        models="results/{trace}/tables/lifetime_models.csv",
        curves="results/{trace}/tables/survival.parquet",
    output:
        metrics="results/{trace}/metrics.json",
    log:
        "logs/{trace}/summarise.log",
    benchmark:
        "benchmarks/{trace}/summarise.tsv"
    group:
        "analyses"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("summarise"),
    params:
        *code_of("summarise"),
        analyses=lambda wildcards: analyses_of(wildcards.trace),
    script:
        "../../scripts/summarise.py"
