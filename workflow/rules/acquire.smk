# Raw tables that the workflow makes or downloads. All others lie in a folder that the registry names.
import re

from study.raw_tables import sample_files

# A trace of each format is made of files of its own.
for sample_format in sorted({trace.entry["format"] for trace in STUDY.traces.values() if trace.synthetic}):

    rule:
        """A synthetic trace in the layout of the format, from a seed: the same bytes every time."""
        name:
            f"make_sample_{sample_format}"
        output:
            **sample_files("{trace}", {"format": sample_format}, STUDY.formats),
        log:
            "logs/{trace}/make_sample.log",
        benchmark:
            "benchmarks/{trace}/make_sample.tsv"
        wildcard_constraints:
            trace=any_of(STUDY.traces_where(lambda trace: trace.synthetic and trace.entry["format"] == sample_format)),
        # Everything waits for it.
        priority: 10
        conda:
            ENVIRONMENT
        resources:
            **asks_for("make_sample"),
        params:
            *code_of("make_sample", f"ttf.formats.{sample_format}.sample"),
            format=sample_format,
            generate=lambda wildcards: trace_of(wildcards).entry["generate"],
        script:
            "../../scripts/make_sample.py"


rule fetch:
    """Download a raw table that is not there yet, and check it. Once there, it is a source file like any other."""
    output:
        file="data/{trace}/{file}",
    log:
        "logs/{trace}/fetch_{file}.log",
    benchmark:
        "benchmarks/{trace}/fetch_{file}.tsv"
    wildcard_constraints:
        # Just these files of these traces, not every such name in every folder.
        trace=any_of([f"{trace}(?=/{re.escape(file)}$)" for trace, file in STUDY.to_fetch]),
        file="[^/]+",
    conda:
        ENVIRONMENT
    resources:
        **asks_for("fetch"),
    params:
        *code_of("fetch"),
        download=lambda wildcards: STUDY.to_fetch[wildcards.trace, wildcards.file],
    script:
        "../../scripts/fetch.py"
