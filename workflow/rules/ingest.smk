# Raw tables -> typed Parquet, and the account of every row.


rule ingest:
    """Read and check every row; exclude the ones that break a rule; stop when they are too many."""
    input:
        unpack(lambda wildcards: given(trace_of(wildcards).raw_inputs)),
        adopted=lambda wildcards: given(trace_of(wildcards).entry.get("schema", [])),
    output:
        raw=directory("results/{trace}/raw"),
        account="results/{trace}/quality/row_account.csv",
        anomalies=in_report("results/{trace}/quality/anomalies.csv", "table", "Data quality"),
        quarantine="results/{trace}/quality/quarantine.parquet",
    log:
        "logs/{trace}/ingest.log",
    benchmark:
        "benchmarks/{trace}/ingest.tsv"
    wildcard_constraints:
        trace=any_of(STUDY.traces_where(lambda trace: not trace.parts)),
    conda:
        ENVIRONMENT
    threads: threads_by_size(8)
    resources:
        **asks_for("ingest"),
    params:
        code=code_of("ingest", by_trace=lambda wildcards: trace_of(wildcards).reader),
        members=lambda wildcards: trace_of(wildcards).members,
        read_by=lambda wildcards: trace_of(wildcards).read_by,
        max_share=lookup("quarantine/max_share", within=config),
    script:
        "../../scripts/ingest.py"


rule ingest_part:
    """The same of one part of a trace that is given in parts, such as a file a week: a new one is read alone."""
    input:
        unpack(lambda wildcards: given(trace_of(wildcards).part_inputs(wildcards.part))),
        adopted=lambda wildcards: given(trace_of(wildcards).entry.get("schema", [])),
    output:
        raw=directory("results/{trace}/parts/{part}/raw"),
        account="results/{trace}/parts/{part}/row_account.csv",
        quarantine="results/{trace}/parts/{part}/quarantine.parquet",
    log:
        "logs/{trace}/ingest_part/{part}.log",
    benchmark:
        "benchmarks/{trace}/ingest_part/{part}.tsv"
    wildcard_constraints:
        trace=any_of(STUDY.traces_where(lambda trace: trace.parts)),
        part="[^/]+",
    group:
        GROUP["parts"]
    conda:
        ENVIRONMENT
    # Parts are read side by side; a single one has the machine to itself.
    threads: lambda wildcards: max(1, 8 // len(trace_of(wildcards).parts))
    resources:
        **asks_for("ingest_part"),
    params:
        code=code_of("ingest_part", by_trace=lambda wildcards: trace_of(wildcards).reader),
        members=lambda wildcards: trace_of(wildcards).members_of_parts[wildcards.part],
        read_by=lambda wildcards: trace_of(wildcards).read_by,
        # Whether too many rows break a rule is said of the whole trace; another limit leaves most parts as they are.
        hopeless_share=max(0.5, lookup("quarantine/max_share", within=config)),
    script:
        "../../scripts/ingest_part.py"


rule merge_parts:
    """Put the parts together, to the same bytes as reading all files at once; keys and owners are looked at here."""
    input:
        unpack(lambda wildcards: given(trace_of(wildcards).raw_inputs)),
        parts=lambda wildcards: trace_of(wildcards).of_parts("raw"),
        accounts=lambda wildcards: trace_of(wildcards).of_parts("row_account.csv"),
        quarantines=lambda wildcards: trace_of(wildcards).of_parts("quarantine.parquet"),
        adopted=lambda wildcards: given(trace_of(wildcards).entry.get("schema", [])),
    output:
        raw=directory("results/{trace}/raw"),
        account="results/{trace}/quality/row_account.csv",
        anomalies=in_report("results/{trace}/quality/anomalies.csv", "table", "Data quality"),
        quarantine="results/{trace}/quality/quarantine.parquet",
        by_part="results/{trace}/quality/row_account_by_part.csv",
    log:
        "logs/{trace}/merge_parts.log",
    benchmark:
        "benchmarks/{trace}/merge_parts.tsv"
    wildcard_constraints:
        trace=any_of(STUDY.traces_where(lambda trace: trace.parts)),
    conda:
        ENVIRONMENT
    threads: threads_by_size(8)
    resources:
        **asks_for("merge_parts"),
    params:
        code=code_of("merge_parts", by_trace=lambda wildcards: trace_of(wildcards).reader),
        parts=lambda wildcards: trace_of(wildcards).members_of_parts,
        read_by=lambda wildcards: trace_of(wildcards).read_by,
        max_share=lookup("quarantine/max_share", within=config),
    script:
        "../../scripts/merge_parts.py"


RULES_OF_TRACES |= {
    "ingest": STUDY.names,
    "merge_parts": STUDY.traces_where(lambda trace: trace.parts),
}
