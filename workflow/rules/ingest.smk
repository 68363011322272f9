# Raw tables -> typed Parquet, and the account of every row.


rule ingest:
    """Read and check every row; put aside the ones that break a rule; stop when they are too many."""
    input:
        unpack(lambda wildcards: RAW_TABLES[wildcards.trace]),
        schema=lambda wildcards: SCHEMAS[wildcards.trace],
        code=lambda wildcards: code_of("ingest", *reader_of(wildcards)),
    output:
        raw=directory("results/{trace}/raw"),
        account="results/{trace}/quality/row_account.csv",
        anomalies="results/{trace}/quality/anomalies.csv",
        quarantine="results/{trace}/quality/quarantine.parquet",
    log:
        "logs/{trace}/ingest.log",
    benchmark:
        "benchmarks/{trace}/ingest.tsv"
    conda:
        "../../environment.yml"
    threads: 8
    params:
        files=lambda wildcards: RAW_TABLES[wildcards.trace],
        reader=lambda wildcards: format_of(wildcards).get("reader"),
        entry=lambda wildcards: mapping_of(wildcards),
        max_share=lookup("quarantine/max_share", within=config),
    script:
        "../../scripts/ingest.py"
