# Raw tables -> typed Parquet, and the account of every row.


def adopted_schema_of(wildcards):
    """The schema of raw tables that the registry names for a trace, a file like its raw tables."""
    entry = trace_of(wildcards).entry
    return local(entry["schema"]) if "schema" in entry else []


def reader_of(wildcards):
    """The module that reads raw tables which are no tables of lines, if the format has one."""
    format = trace_of(wildcards).format
    return [format["reader"]] if "reader" in format else []


def read_by(wildcards):
    """What the rules that read raw tables are told of them: reader, schema, and what the registry says."""
    trace = trace_of(wildcards)
    return {"reader": trace.format.get("reader"), "entry": trace.reading, "schema": STUDY.schemas[trace.name]}


def raw_files_of(wildcards):
    """Table -> the files that it is read from; several tables may be in one archive."""
    return {
        table: [source_file(on_disk(file)) for file in files] for table, files in trace_of(wildcards).raw_files.items()
    }


def raw_files_of_part(wildcards):
    """Table -> the file that it is read from, of a part of a trace."""
    files = trace_of(wildcards).parts[wildcards.part]
    return {table: source_file(on_disk(file)) for table, file in files.items()}


def products_of_parts(wildcards, name):
    """One product of every part of the trace, in the order of the parts."""
    return [f"results/{wildcards.trace}/parts/{part}/{name}" for part in trace_of(wildcards).parts]


rule ingest:
    """Read and check every row; exclude the ones that break a rule; stop when they are too many."""
    input:
        unpack(raw_files_of),
        adopted=adopted_schema_of,
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
        "../../environment.yml"
    threads: threads_by_size(8)
    resources:
        **asks_for("ingest"),
    params:
        *code_of("ingest", by_trace=reader_of),
        members=lambda wildcards: trace_of(wildcards).members,
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
        trace=any_of(STUDY.traces_where(lambda trace: trace.parts)),
        part="[^/]+",
    group:
        "parts"
    conda:
        "../../environment.yml"
    # Parts are read side by side; a single one has the machine to itself.
    threads: lambda wildcards: max(1, 8 // len(trace_of(wildcards).parts))
    resources:
        **asks_for("ingest_part"),
    params:
        *code_of("ingest_part", by_trace=reader_of),
        members=lambda wildcards: trace_of(wildcards).members_of_parts[wildcards.part],
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
        "../../environment.yml"
    threads: threads_by_size(8)
    resources:
        **asks_for("merge_parts"),
    params:
        *code_of("merge_parts", by_trace=reader_of),
        parts=lambda wildcards: trace_of(wildcards).members_of_parts,
        read_by=read_by,
        max_share=lookup("quarantine/max_share", within=config),
    script:
        "../../scripts/merge_parts.py"


RULES_OF_TRACES |= {
    "ingest": STUDY.names,
    "merge_parts": STUDY.traces_where(lambda trace: trace.parts),
}
