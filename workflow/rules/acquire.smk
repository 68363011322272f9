# Raw tables that the workflow unpacks or downloads. All other raw tables lie in folders that the registry names.
import re

from ttf.study.trace_files import list_sample_files

# One rule per format, because each format has its own files.
for sample_format in sorted({trace.entry["format"] for trace in STUDY.traces.values() if trace.sample_files}):

    rule:
        """Unpack the raw tables of an embedded sample."""
        name:
            f"unpack_sample_{sample_format}"
        input:
            # The parameter sha256 says when the file changed.
            packed=ancient(mark_local(make_relative(ROOT / STUDY.formats[sample_format]["sample"]["packed"]))),
        output:
            **list_sample_files("{trace}", {"format": sample_format}, STUDY.formats),
        log:
            "logs/{trace}/unpack_sample.log",
        benchmark:
            "benchmarks/{trace}/unpack_sample.tsv"
        wildcard_constraints:
            trace=match_names(STUDY.select_traces(lambda t: t.sample_files and t.entry["format"] == sample_format)),
        # All other jobs wait for this one.
        priority: 10
        conda:
            ENVIRONMENT
        resources:
            **request_resources("unpack_sample"),
        params:
            code=hash_code("unpack_sample"),
            sha256=STUDY.formats[sample_format]["sample"]["sha256"],
        script:
            "../../scripts/unpack_sample.py"


rule fetch:
    """Download and check a missing raw table; an existing file is a source file like any other."""
    output:
        file="data/{trace}/{file}",
    log:
        "logs/{trace}/fetch_{file}.log",
    benchmark:
        "benchmarks/{trace}/fetch_{file}.tsv"
    wildcard_constraints:
        # Match these files of these traces only.
        trace=match_names([f"{trace}(?=/{re.escape(file)}$)" for trace, file in STUDY.downloads]),
        file="[^/]+",
    conda:
        ENVIRONMENT
    resources:
        **request_resources("fetch"),
    params:
        code=hash_code("fetch"),
        download=lambda wildcards: STUDY.downloads[wildcards.trace, wildcards.file],
    script:
        "../../scripts/fetch.py"
