# What the raw tables hold and what is wrong with them, in words.


rule describe_tables:
    """Statistics of every raw column of the rows kept, and the schema that the others suggest."""
    input:
        unpack(lambda wildcards: given(trace_of(wildcards).raw_inputs)),
        raw="results/{trace}/raw",
        quarantine="results/{trace}/quality/quarantine.parquet",
        account="results/{trace}/quality/row_account.csv",
        by_part=lambda wildcards: (
            [f"results/{wildcards.trace}/quality/row_account_by_part.csv"] if trace_of(wildcards).parts else []
        ),
        adopted=lambda wildcards: given(trace_of(wildcards).entry.get("schema", [])),
    output:
        statistics="results/{trace}/quality/statistics.csv",
        raw_files="results/{trace}/quality/raw_files.csv",
        suggested="results/{trace}/quality/suggested_schema.yaml",
    log:
        "logs/{trace}/describe_tables.log",
    benchmark:
        "benchmarks/{trace}/describe_tables.tsv"
    # Only the summary waits for it: it runs while charts are drawn, on one core.
    priority: -10
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **asks_for("describe_tables"),
    params:
        code=code_of("describe_tables", by_trace=lambda wildcards: trace_of(wildcards).reader),
        members=lambda wildcards: trace_of(wildcards).members,
        entries=lambda wildcards: trace_of(wildcards).entries,
        read_by=lambda wildcards: trace_of(wildcards).read_by,
    script:
        "../../scripts/describe_tables.py"


RULES_OF_TRACES["describe_tables"] = STUDY.names
