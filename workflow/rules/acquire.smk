# Raw tables that the workflow unpacks or downloads. All others lie in a folder that the registry names.
import re

from study.trace_files import sample_files

# A trace of each format is made of files of its own.
for sample_format in sorted({trace.entry["format"] for trace in STUDY.traces.values() if trace.made_files}):

    rule:
        """The raw tables of an embedded sample, out of its packed file."""
        name:
            f"unpack_sample_{sample_format}"
        input:
            # Its checksum, a parameter, says when it changed.
            packed=ancient(there(seen_from_here(ROOT / STUDY.formats[sample_format]["sample"]["packed"]))),
        output:
            **sample_files("{trace}", {"format": sample_format}, STUDY.formats),
        log:
            "logs/{trace}/unpack_sample.log",
        benchmark:
            "benchmarks/{trace}/unpack_sample.tsv"
        wildcard_constraints:
            trace=any_of(STUDY.traces_where(lambda trace: trace.made_files and trace.entry["format"] == sample_format)),
        # Everything waits for it.
        priority: 10
        conda:
            ENVIRONMENT
        resources:
            **asks_for("unpack_sample"),
        params:
            code=code_of("unpack_sample"),
            sha256=STUDY.formats[sample_format]["sample"]["sha256"],
        script:
            "../../scripts/unpack_sample.py"


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
        code=code_of("fetch"),
        download=lambda wildcards: STUDY.to_fetch[wildcards.trace, wildcards.file],
    script:
        "../../scripts/fetch.py"
