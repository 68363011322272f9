# Raw tables -> typed Parquet, and the account of every row.


rule ingest:
    """Read and check every row; put aside the ones that break a rule; stop when they are too many."""
    input:
        unpack(raw_files_of),
        adopted=adopted_schema_of,
    output:
        raw=directory("results/{trace}/raw"),
        account="results/{trace}/quality/row_account.csv",
        anomalies=in_report("results/{trace}/quality/anomalies.csv", "table"),
        quarantine="results/{trace}/quality/quarantine.parquet",
    log:
        "logs/{trace}/ingest.log",
    benchmark:
        "benchmarks/{trace}/ingest.tsv"
    wildcard_constraints:
        trace=any_of([trace for trace in config["study"] if trace not in PARTS]),
    conda:
        "../../environment.yml"
    threads: threads_by_size(8)
    resources:
        **asks_for("ingest"),
    params:
        *code_of("ingest", by_trace=reader_of),
        members=members_of,
        read_by=read_by,
        max_share=lookup("quarantine/max_share", within=config),
    script:
        "../../scripts/ingest.py"


rule ingest_part:
    """The same of one part of a trace that is given in parts, such as a file a week: a new one is read alone."""
    input:
        unpack(raw_files_of_part),
        adopted=adopted_schema_of,
    output:
        raw=directory("results/{trace}/parts/{part}/raw"),
        account="results/{trace}/parts/{part}/row_account.csv",
        quarantine="results/{trace}/parts/{part}/quarantine.parquet",
    log:
        "logs/{trace}/ingest_part/{part}.log",
    benchmark:
        "benchmarks/{trace}/ingest_part/{part}.tsv"
    wildcard_constraints:
        trace=any_of(PARTS),
        part="[^/]+",
    group:
        "parts"
    conda:
        "../../environment.yml"
    # Parts are read side by side; a single one has the machine to itself.
    threads: lambda wildcards: max(1, 8 // len(PARTS[wildcards.trace]))
    resources:
        **asks_for("ingest_part"),
    params:
        *code_of("ingest_part", by_trace=reader_of),
        members=lambda wildcards: members_of_parts(wildcards)[wildcards.part],
        read_by=read_by,
        # Whether too many rows break a rule is said of the whole trace; another limit leaves most parts as they are.
        hopeless_share=max(0.5, lookup("quarantine/max_share", within=config)),
    script:
        "../../scripts/ingest_part.py"


rule merge_parts:
    """Put the parts together, to the same bytes as reading all files at once; keys and owners are looked at here."""
    input:
        unpack(raw_files_of),
        parts=lambda wildcards: products_of_parts(wildcards, "raw"),
        accounts=lambda wildcards: products_of_parts(wildcards, "row_account.csv"),
        quarantines=lambda wildcards: products_of_parts(wildcards, "quarantine.parquet"),
        adopted=adopted_schema_of,
    output:
        raw=directory("results/{trace}/raw"),
        account="results/{trace}/quality/row_account.csv",
        anomalies=in_report("results/{trace}/quality/anomalies.csv", "table"),
        quarantine="results/{trace}/quality/quarantine.parquet",
        by_part="results/{trace}/quality/row_account_by_part.csv",
    log:
        "logs/{trace}/merge_parts.log",
    benchmark:
        "benchmarks/{trace}/merge_parts.tsv"
    wildcard_constraints:
        trace=any_of(PARTS),
    conda:
        "../../environment.yml"
    threads: threads_by_size(8)
    resources:
        **asks_for("merge_parts"),
    params:
        *code_of("merge_parts", by_trace=reader_of),
        parts=members_of_parts,
        read_by=read_by,
        max_share=lookup("quarantine/max_share", within=config),
    script:
        "../../scripts/merge_parts.py"


rule describe_tables:
    """Statistics of every raw column, an independent check of the rows kept, and the schema that the others suggest."""
    input:
        unpack(raw_files_of),
        raw="results/{trace}/raw",
        quarantine="results/{trace}/quality/quarantine.parquet",
        adopted=adopted_schema_of,
    output:
        statistics="results/{trace}/quality/statistics.csv",
        validation="results/{trace}/quality/validation.csv",
        suggested="results/{trace}/quality/suggested_schema.yaml",
    log:
        "logs/{trace}/describe_tables.log",
    benchmark:
        "benchmarks/{trace}/describe_tables.tsv"
    # Nothing but the summary waits for it: it runs beside the charts, on one core.
    priority: -10
    group:
        "analyses"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **asks_for("describe_tables"),
    params:
        *code_of("describe_tables", by_trace=reader_of),
        members=members_of,
        read_by=read_by,
    script:
        "../../scripts/describe_tables.py"
