# Raw tables that the workflow makes or downloads. All others lie in a folder that the registry names.
import re

from study.raw_tables import to_fetch

TO_FETCH = {
    (trace, file): download
    for trace, entry in REGISTRY.items()
    for file, download in to_fetch(trace, entry, RAW_TABLES[trace]).items()
}


rule make_sample:
    """A synthetic trace in the layout of the PAI 2020 tables, from a seed: the same bytes every time."""
    input:
        code=code_of("make_sample"),
    output:
        job="data/{trace}/pai_job_table.csv",
        task="data/{trace}/pai_task_table.csv",
        instance="data/{trace}/pai_instance_table.csv",
        sensor="data/{trace}/pai_sensor_table.csv",
        group_tag="data/{trace}/pai_group_tag_table.csv",
        machine_spec="data/{trace}/pai_machine_spec.csv",
        machine_metric="data/{trace}/pai_machine_metric.csv",
    log:
        "logs/{trace}/make_sample.log",
    benchmark:
        "benchmarks/{trace}/make_sample.tsv"
    wildcard_constraints:
        trace=any_of(GENERATED),
    conda:
        "../../environment.yml"
    threads: 8
    params:
        tasks=lookup("registry/{trace}/generate/tasks", within=config),
        seed=lookup("registry/{trace}/generate/seed", within=config),
    script:
        "../../scripts/make_sample.py"


rule fetch:
    """Download a raw table that is not there yet, and check it. Once there, it is a source file like any other."""
    input:
        code=code_of("fetch"),
    output:
        file="data/{trace}/{file}",
    log:
        "logs/{trace}/fetch_{file}.log",
    benchmark:
        "benchmarks/{trace}/fetch_{file}.tsv"
    wildcard_constraints:
        # Just these files of these traces, not every such name in every folder.
        trace=any_of([f"{trace}(?=/{re.escape(file)}$)" for trace, file in TO_FETCH]),
        file="[^/]+",
    conda:
        "../../environment.yml"
    params:
        download=lambda wildcards: TO_FETCH[wildcards.trace, wildcards.file],
    script:
        "../../scripts/fetch.py"
