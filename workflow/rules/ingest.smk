# Raw tables -> typed Parquet, with an account of every row.


rule ingest:
    """Read and check every row; quarantine rows that break a rule; stop if there are too many of them."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).raw_paths)),
        adopted=lambda wildcards: mark_inputs(get_trace(wildcards).entry.get("schema", [])),
    output:
        raw=directory("results/{trace}/raw"),
        account="results/{trace}/quality/row_account.csv",
        anomalies=mark_for_report("results/{trace}/quality/anomalies.csv", "table", "Data quality"),
        quarantine="results/{trace}/quality/quarantine.parquet",
    log:
        "logs/{trace}/ingest.log",
    benchmark:
        "benchmarks/{trace}/ingest.tsv"
    wildcard_constraints:
        trace=match_names(STUDY.select_traces(lambda trace: not trace.parts)),
    conda:
        ENVIRONMENT
    threads: choose_threads(8)
    resources:
        **request_resources("ingest"),
    params:
        code=hash_code("ingest", by_trace=lambda wildcards: get_trace(wildcards).reader),
        members=lambda wildcards: get_trace(wildcards).members,
        reader_options=lambda wildcards: get_trace(wildcards).reader_options,
        max_share=lookup("quarantine/max_share", within=config),
    script:
        "../../scripts/ingest.py"


rule ingest_part:
    """Read and check one part of a trace, such as a weekly file; a new part is read alone."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).part_paths(wildcards.part))),
        adopted=lambda wildcards: mark_inputs(get_trace(wildcards).entry.get("schema", [])),
    output:
        raw=directory("results/{trace}/parts/{part}/raw"),
        account="results/{trace}/parts/{part}/row_account.csv",
        quarantine="results/{trace}/parts/{part}/quarantine.parquet",
    log:
        "logs/{trace}/ingest_part/{part}.log",
    benchmark:
        "benchmarks/{trace}/ingest_part/{part}.tsv"
    wildcard_constraints:
        trace=match_names(STUDY.select_traces(lambda trace: trace.parts)),
        part="[^/]+",
    group:
        GROUP["parts"]
    conda:
        ENVIRONMENT
    # Parts are read in parallel; a single part gets all cores.
    threads: lambda wildcards: max(1, 8 // len(get_trace(wildcards).parts))
    resources:
        **request_resources("ingest_part"),
    params:
        code=hash_code("ingest_part", by_trace=lambda wildcards: get_trace(wildcards).reader),
        members=lambda wildcards: get_trace(wildcards).part_members[wildcards.part],
        reader_options=lambda wildcards: get_trace(wildcards).reader_options,
        # The share of bad rows is checked on the whole trace, so that a new limit does not rerun most parts.
        hopeless_share=max(0.5, lookup("quarantine/max_share", within=config)),
    script:
        "../../scripts/ingest_part.py"


rule merge_parts:
    """Merge the parts into the same bytes as reading all files at once; check keys and owners."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).raw_paths)),
        parts=lambda wildcards: get_trace(wildcards).list_part_products("raw"),
        accounts=lambda wildcards: get_trace(wildcards).list_part_products("row_account.csv"),
        quarantines=lambda wildcards: get_trace(wildcards).list_part_products("quarantine.parquet"),
        adopted=lambda wildcards: mark_inputs(get_trace(wildcards).entry.get("schema", [])),
    output:
        raw=directory("results/{trace}/raw"),
        account="results/{trace}/quality/row_account.csv",
        anomalies=mark_for_report("results/{trace}/quality/anomalies.csv", "table", "Data quality"),
        quarantine="results/{trace}/quality/quarantine.parquet",
        by_part="results/{trace}/quality/row_account_by_part.csv",
    log:
        "logs/{trace}/merge_parts.log",
    benchmark:
        "benchmarks/{trace}/merge_parts.tsv"
    wildcard_constraints:
        trace=match_names(STUDY.select_traces(lambda trace: trace.parts)),
    conda:
        ENVIRONMENT
    threads: choose_threads(8)
    resources:
        **request_resources("merge_parts"),
    params:
        code=hash_code("merge_parts", by_trace=lambda wildcards: get_trace(wildcards).reader),
        parts=lambda wildcards: get_trace(wildcards).part_members,
        reader_options=lambda wildcards: get_trace(wildcards).reader_options,
        max_share=lookup("quarantine/max_share", within=config),
    script:
        "../../scripts/merge_parts.py"


TRACES_BY_RULE |= {
    "ingest": STUDY.names,
    "merge_parts": STUDY.select_traces(lambda trace: trace.parts),
}
