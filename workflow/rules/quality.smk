# The content and the quality of the raw tables.


rule describe_tables:
    """Compute statistics of every raw column over accepted rows; suggest a schema from the quarantined rows."""
    input:
        unpack(lambda wildcards: mark_inputs(get_trace(wildcards).raw_paths)),
        raw="results/{trace}/raw",
        quarantine="results/{trace}/quality/quarantine.parquet",
        account="results/{trace}/quality/row_account.csv",
        by_part=lambda wildcards: (
            [f"results/{wildcards.trace}/quality/row_account_by_part.csv"] if get_trace(wildcards).parts else []
        ),
        adopted=lambda wildcards: mark_inputs(get_trace(wildcards).entry.get("schema", [])),
    output:
        statistics="results/{trace}/quality/statistics.csv",
        raw_files="results/{trace}/quality/raw_files.csv",
        suggested="results/{trace}/quality/suggested_schema.yaml",
    log:
        "logs/{trace}/describe_tables.log",
    benchmark:
        "benchmarks/{trace}/describe_tables.tsv"
    # Only the summary needs this job, so it runs on one core while charts are drawn.
    priority: -10
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **request_resources("describe_tables"),
    params:
        code=hash_code("describe_tables", by_trace=lambda wildcards: get_trace(wildcards).reader),
        members=lambda wildcards: get_trace(wildcards).members,
        entries=lambda wildcards: get_trace(wildcards).entries,
        reader_options=lambda wildcards: get_trace(wildcards).reader_options,
    script:
        "../../scripts/describe_tables.py"


TRACES_BY_RULE["describe_tables"] = STUDY.names
