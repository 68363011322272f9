# Typed raw tables -> attempts, jobs and placements -> lives.

WITH_ATTEMPTS = STUDY.traces_where(lambda trace: "attempts" in trace.products)
WITHOUT_ATTEMPTS = STUDY.traces_where(lambda trace: trace.has_jobs and trace.name not in WITH_ATTEMPTS)
# Of the others, these have placements too.
WITH_PLACEMENTS = [name for name in WITHOUT_ATTEMPTS if "placements" in STUDY.traces[name].products]
WITH_LIVES = STUDY.traces_where(lambda trace: "lives" in trace.products)


rule derive_share:
    """A share of the jobs of a large trace: what its other tables say of each task."""
    input:
        raw="results/{trace}/raw",
    output:
        temp(directory("results/{trace}/shares/{share}")),
    log:
        "logs/{trace}/derive_share/{share}.log",
    benchmark:
        "benchmarks/{trace}/derive_share/{share}.tsv"
    wildcard_constraints:
        trace=any_of(STUDY.traces_where(lambda trace: trace.shares > 1)),
        share="[0-9]+",
    group:
        GROUP["parts"]
    conda:
        ENVIRONMENT
    threads: 2
    resources:
        **asks_for("derive_share"),
        partition_rows=config["scatter"]["partition_rows"],
        shares=lambda wildcards: trace_of(wildcards).shares,
    params:
        code=code_of("derive_share", by_trace=lambda wildcards: [trace_of(wildcards).format["code"]]),
        derived_by=lambda wildcards: trace_of(wildcards).derived_by,
    script:
        "../../scripts/derive_share.py"


rule derive_runtimes:
    """The common job record: start, end, run time, queueing delay, outcome and requests of every job."""
    input:
        raw="results/{trace}/raw",
        shares=lambda wildcards: trace_of(wildcards).of_shares,
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
        trace=any_of(WITHOUT_ATTEMPTS),
    conda:
        ENVIRONMENT
    threads: threads_by_size(8)
    resources:
        **asks_for("derive_runtimes"),
        # No parameter: how the rows are divided is no part of what they say.
        partition_rows=config["scatter"]["partition_rows"],
    params:
        code=code_of("derive_runtimes", by_trace=lambda wildcards: [trace_of(wildcards).format["code"]]),
        derived_by=lambda wildcards: trace_of(wildcards).derived_by,
        node_table=lambda wildcards: trace_of(wildcards).format.get("node_table"),
        parts=lambda wildcards: list(trace_of(wildcards).parts),
        block_days=config["inference"]["block_days"],
    script:
        "../../scripts/derive_runtimes.py"


rule derive_attempts:
    """The same where a format tells attempts apart, with every try at a job, in sequence, and the machines it was on."""
    input:
        unpack(lambda wildcards: given(trace_of(wildcards).derived_from("derive_attempts"))),
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
        trace=any_of(WITH_ATTEMPTS),
    conda:
        ENVIRONMENT
    threads: threads_by_size(8)
    resources:
        **asks_for("derive_attempts"),
    params:
        code=code_of("derive_attempts", by_trace=lambda wildcards: [trace_of(wildcards).format["code"]]),
        derived_by=lambda wildcards: trace_of(wildcards).derived_by,
        node_table=lambda wildcards: trace_of(wildcards).format.get("node_table"),
        parts=lambda wildcards: list(trace_of(wildcards).parts),
        block_days=config["inference"]["block_days"],
        rules=lambda wildcards: trace_of(wildcards).infra_failures,
    script:
        "../../scripts/derive_attempts.py"


rule derive_placements:
    """Every part of a job on one machine, where a format says that and tells no attempts apart."""
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
        trace=any_of(WITH_PLACEMENTS),
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **asks_for("derive_placements"),
    params:
        code=code_of("derive_placements", by_trace=lambda wildcards: [trace_of(wildcards).format["code"]]),
        derived_by=lambda wildcards: trace_of(wildcards).derived_by,
    script:
        "../../scripts/derive_placements.py"


# Whether it is known which units were watched decides what the rule writes.
WITH_OUTAGES = STUDY.traces_where(lambda trace: trace.has_outages and trace.has_exposure)
UNWATCHED = STUDY.traces_where(lambda trace: trace.has_outages and not trace.has_exposure)


rule derive_outages:
    """Outages of nodes or components, the records they are merged of, and the time that units were watched."""
    input:
        unpack(lambda wildcards: given(trace_of(wildcards).derived_from("derive_outages"))),
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
        trace=any_of(WITH_OUTAGES),
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("derive_outages"),
    params:
        code=code_of("derive_outages", by_trace=lambda wildcards: [trace_of(wildcards).format["code"]]),
        derived_by=lambda wildcards: trace_of(wildcards).outages_by,
        rules=lambda wildcards: trace_of(wildcards).outage_rules,
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
        trace=any_of(UNWATCHED),


rule derive_lives:
    """Exposure with its duration and the event that ended it, censored where none did: of jobs, nodes or components."""
    input:
        unpack(lambda wildcards: given(trace_of(wildcards).derived_from("derive_lives"))),
    output:
        lives="results/{trace}/lives.parquet",
    log:
        "logs/{trace}/derive_lives.log",
    benchmark:
        "benchmarks/{trace}/derive_lives.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **asks_for("derive_lives"),
    params:
        code=code_of("derive_lives", by_trace=lambda wildcards: [trace_of(wildcards).format["code"]]),
        derived_by=lambda wildcards: trace_of(wildcards).derived_by,
        of_outages=lambda wildcards: {
            "causes": trace_of(wildcards).causes,
            "clusters": trace_of(wildcards).format.get("clusters", {}),
        },
    script:
        "../../scripts/derive_lives.py"


rule derive_infra_lives:
    """A life per attempt, ended where hardware or system software ended it: a requeued job hides no node failure."""
    input:
        unpack(lambda wildcards: given(trace_of(wildcards).derived_from("derive_infra_lives"))),
    output:
        lives="results/{trace}/lives_infra.parquet",
    log:
        "logs/{trace}/derive_infra_lives.log",
    benchmark:
        "benchmarks/{trace}/derive_infra_lives.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **asks_for("derive_infra_lives"),
    params:
        code=code_of("derive_infra_lives"),
        rules=lambda wildcards: trace_of(wildcards).infra_failures,
        block_days=config["inference"]["block_days"],
        causes=lambda wildcards: trace_of(wildcards).causes,
    script:
        "../../scripts/derive_infra_lives.py"


RULES_OF_TRACES |= {
    "derive_runtimes": WITHOUT_ATTEMPTS,
    "derive_attempts": WITH_ATTEMPTS,
    "derive_placements": WITH_PLACEMENTS,
    "derive_outages": WITH_OUTAGES,
    "derive_outages_unwatched": UNWATCHED,
    "derive_lives": WITH_LIVES,
    "derive_infra_lives": WITH_LIVES,
}
