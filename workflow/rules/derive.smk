# Typed raw tables -> attempts, jobs and placements -> durations.

TRACES_WITH_ATTEMPTS = STUDY.select_traces(lambda trace: "attempts" in trace.products)
TRACES_WITHOUT_ATTEMPTS = STUDY.select_traces(lambda trace: trace.has_jobs and trace.name not in TRACES_WITH_ATTEMPTS)
TRACES_WITH_PLACEMENTS = [name for name in TRACES_WITHOUT_ATTEMPTS if "placements" in STUDY.traces[name].products]
TRACES_WITH_DURATIONS = STUDY.select_traces(lambda trace: "durations" in trace.products)

TRACES_WITH_NODE_LOGS = STUDY.select_traces(lambda trace: trace.node_logs)
TRACES_WITH_TRAINING_LOGS = STUDY.select_traces(lambda trace: trace.training_logs)


rule derive_share:
    """Summarise the other tables by task, for a share of the jobs of a large trace."""
    input:
        raw="results/{trace}/raw",
    output:
        temp(directory("results/{trace}/shares/{share}")),
    log:
        "logs/{trace}/derive_share/{share}.log",
    benchmark:
        "benchmarks/{trace}/derive_share/{share}.tsv"
    wildcard_constraints:
        trace=match_names(STUDY.select_traces(lambda trace: trace.shares > 1)),
        share="[0-9]+",
    group:
        GROUP["parts"]
    conda:
        ENVIRONMENT
    threads: 2
    resources:
        **request_resources("derive_share"),
        partition_rows=config["scatter"]["partition_rows"],
        shares=lambda wildcards: get_trace(wildcards).shares,
    params:
        code=hash_code("derive_share", by_trace=lambda wildcards: [get_trace(wildcards).format["code"]]),
        derivation_options=lambda wildcards: get_trace(wildcards).derivation_options,
    script:
        "../../scripts/derive_share.py"


rule derive_runtimes:
    """Write the common job record: start, end, run time, queueing delay, outcome and requests of every job."""
    input:
        raw="results/{trace}/raw",
        shares=lambda wildcards: get_trace(wildcards).share_folders,
    output:
        jobs="results/{trace}/jobs.parquet",
        nodes="results/{trace}/nodes.parquet",
        agreement="results/{trace}/tables/runtime_agreement.csv",
        size_unit="results/{trace}/tables/size_unit.csv",
    log:
        "logs/{trace}/derive_runtimes.log",
    benchmark:
        "benchmarks/{trace}/derive_runtimes.tsv"
    wildcard_constraints:
        trace=match_names(TRACES_WITHOUT_ATTEMPTS),
    # The longest analyses wait for these jobs.
    priority: 5
    conda:
        ENVIRONMENT
    threads: choose_threads(8)
    resources:
        **request_resources("derive_runtimes"),
        # A resource, not a parameter: the division of rows does not change the result.
        partition_rows=config["scatter"]["partition_rows"],
    params:
        code=hash_code("derive_runtimes", by_trace=lambda wildcards: [get_trace(wildcards).format["code"]]),
        derivation_options=lambda wildcards: get_trace(wildcards).derivation_options,
        node_table=lambda wildcards: get_trace(wildcards).format.get("node_table"),
        parts=lambda wildcards: list(get_trace(wildcards).parts),
        block_days=config["inference"]["block_days"],
    script:
        "../../scripts/derive_runtimes.py"


rule derive_attempts:
    """Write the job record, every attempt in sequence and its placements, for formats that record attempts."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).find_rule_inputs("derive_attempts"))),
        raw="results/{trace}/raw",
    output:
        jobs="results/{trace}/jobs.parquet",
        attempts="results/{trace}/attempts.parquet",
        placements="results/{trace}/placements.parquet",
        nodes="results/{trace}/nodes.parquet",
        agreement="results/{trace}/tables/runtime_agreement.csv",
        size_unit="results/{trace}/tables/size_unit.csv",
    log:
        "logs/{trace}/derive_attempts.log",
    benchmark:
        "benchmarks/{trace}/derive_attempts.tsv"
    wildcard_constraints:
        trace=match_names(TRACES_WITH_ATTEMPTS),
    priority: 5
    conda:
        ENVIRONMENT
    threads: choose_threads(8)
    resources:
        **request_resources("derive_attempts"),
    params:
        code=hash_code("derive_attempts", by_trace=lambda wildcards: [get_trace(wildcards).format["code"]]),
        derivation_options=lambda wildcards: get_trace(wildcards).derivation_options,
        node_table=lambda wildcards: get_trace(wildcards).format.get("node_table"),
        parts=lambda wildcards: list(get_trace(wildcards).parts),
        block_days=config["inference"]["block_days"],
        rules=lambda wildcards: get_trace(wildcards).infra_failures,
    script:
        "../../scripts/derive_attempts.py"


rule derive_placements:
    """Write the placements of jobs on machines, for formats that record placements but no attempts."""
    input:
        raw="results/{trace}/raw",
        jobs="results/{trace}/jobs.parquet",
    output:
        placements="results/{trace}/placements.parquet",
    log:
        "logs/{trace}/derive_placements.log",
    benchmark:
        "benchmarks/{trace}/derive_placements.tsv"
    wildcard_constraints:
        trace=match_names(TRACES_WITH_PLACEMENTS),
    priority: 5
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **request_resources("derive_placements"),
    params:
        code=hash_code("derive_placements", by_trace=lambda wildcards: [get_trace(wildcards).format["code"]]),
        derivation_options=lambda wildcards: get_trace(wildcards).derivation_options,
    script:
        "../../scripts/derive_placements.py"


# The rule writes exposure only if the observed units are known.
TRACES_WITH_EXPOSURE = STUDY.select_traces(lambda trace: trace.has_outages and trace.has_exposure)
TRACES_WITHOUT_EXPOSURE = STUDY.select_traces(lambda trace: trace.has_outages and not trace.has_exposure)


rule derive_outages:
    """Write outages of nodes or components, the records merged into them, and the observation time of units."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).find_rule_inputs("derive_outages"))),
        raw="results/{trace}/raw",
    output:
        exposure="results/{trace}/exposure.parquet",
        outages="results/{trace}/outages.parquet",
        records="results/{trace}/outage_records.parquet",
    log:
        "logs/{trace}/derive_outages.log",
    benchmark:
        "benchmarks/{trace}/derive_outages.tsv"
    wildcard_constraints:
        trace=match_names(TRACES_WITH_EXPOSURE),
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("derive_outages"),
    params:
        code=hash_code("derive_outages", by_trace=lambda wildcards: [get_trace(wildcards).format["code"]]),
        derivation_options=lambda wildcards: get_trace(wildcards).outage_options,
        rules=lambda wildcards: get_trace(wildcards).outage_rules,
    script:
        "../../scripts/derive_outages.py"


use rule derive_outages as derive_outages_unwatched with:
    output:
        outages="results/{trace}/outages.parquet",
        records="results/{trace}/outage_records.parquet",
    log:
        "logs/{trace}/derive_outages.log",
    benchmark:
        "benchmarks/{trace}/derive_outages.tsv"
    wildcard_constraints:
        trace=match_names(TRACES_WITHOUT_EXPOSURE),


rule derive_durations:
    """Write one duration per job, node or component, ended by an event or censored."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).find_rule_inputs("derive_durations"))),
    output:
        durations="results/{trace}/durations.parquet",
    log:
        "logs/{trace}/derive_durations.log",
    benchmark:
        "benchmarks/{trace}/derive_durations.tsv"
    priority: 5
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **request_resources("derive_durations"),
    params:
        code=hash_code("derive_durations", by_trace=lambda wildcards: [get_trace(wildcards).format["code"]]),
        derivation_options=lambda wildcards: get_trace(wildcards).derivation_options,
        outage_options=lambda wildcards: {
            "causes": get_trace(wildcards).causes,
            "clusters": get_trace(wildcards).format.get("clusters", {}),
        },
    script:
        "../../scripts/derive_durations.py"


rule derive_infra_durations:
    """Write one duration per attempt, ended by an infrastructure failure or censored, so that no requeue hides one."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).find_rule_inputs("derive_infra_durations"))),
    output:
        durations="results/{trace}/durations_infra.parquet",
    log:
        "logs/{trace}/derive_infra_durations.log",
    benchmark:
        "benchmarks/{trace}/derive_infra_durations.tsv"
    priority: 5
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **request_resources("derive_infra_durations"),
    params:
        code=hash_code("derive_infra_durations"),
        rules=lambda wildcards: get_trace(wildcards).infra_failures,
        block_days=config["inference"]["block_days"],
        causes=lambda wildcards: get_trace(wildcards).causes,
    script:
        "../../scripts/derive_infra_durations.py"


rule derive_node_errors:
    """Write errors of nodes from their logs, the spans in which each node was watched, and an account of all lines."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).find_rule_inputs("derive_node_errors"))),
        node_logs=lambda wildcards: mark_inputs(get_trace(wildcards).node_logs),
    output:
        node_errors="results/{trace}/node_errors.parquet",
        node_log_watch="results/{trace}/node_log_watch.parquet",
        node_log_lines="results/{trace}/tables/node_log_lines.csv",
    log:
        "logs/{trace}/derive_node_errors.log",
    benchmark:
        "benchmarks/{trace}/derive_node_errors.tsv"
    wildcard_constraints:
        trace=match_names(TRACES_WITH_NODE_LOGS),
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    threads: 2
    resources:
        **request_resources("derive_node_errors"),
    params:
        code=hash_code("derive_node_errors"),
        rules=lambda wildcards: get_trace(wildcards).log_rules,
        times=lambda wildcards: get_trace(wildcards).log_times,
        options=lambda wildcards: get_trace(wildcards).log_limits,
    script:
        "../../scripts/derive_node_errors.py"


rule derive_training_events:
    """Write the events of training logs, such as steps and saves, and an account of all lines."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).find_rule_inputs("derive_training_events"))),
        training_logs=lambda wildcards: mark_inputs(get_trace(wildcards).training_logs),
    output:
        training_events="results/{trace}/training_events.parquet",
        training_log_lines="results/{trace}/tables/training_log_lines.csv",
    log:
        "logs/{trace}/derive_training_events.log",
    benchmark:
        "benchmarks/{trace}/derive_training_events.tsv"
    wildcard_constraints:
        trace=match_names(TRACES_WITH_TRAINING_LOGS),
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **request_resources("derive_training_events"),
    params:
        code=hash_code("derive_training_events"),
        options=lambda wildcards: get_trace(wildcards).training_log_options,
    script:
        "../../scripts/derive_training_events.py"


TRACES_BY_RULE |= {
    "derive_runtimes": TRACES_WITHOUT_ATTEMPTS,
    "derive_attempts": TRACES_WITH_ATTEMPTS,
    "derive_placements": TRACES_WITH_PLACEMENTS,
    "derive_outages": TRACES_WITH_EXPOSURE,
    "derive_outages_unwatched": TRACES_WITHOUT_EXPOSURE,
    "derive_durations": TRACES_WITH_DURATIONS,
    "derive_infra_durations": TRACES_WITH_DURATIONS,
    "derive_node_errors": TRACES_WITH_NODE_LOGS,
    "derive_training_events": TRACES_WITH_TRAINING_LOGS,
}
