# Where every product comes from: hashes of products, raw files and code; rules, scripts and parameters.
from study.graph import jobs_behind


rule write_manifest:
    """The manifest: what each product was made of, by which rule and with which parameters, so that all can be checked."""
    input:
        products=lambda _: one_of_each(jobs_of_study()),
        project=local(seen_from_here(ROOT / "pyproject.toml")),
    output:
        manifest="results/manifest.json",
    log:
        "logs/write_manifest.log",
    benchmark:
        "benchmarks/write_manifest.tsv"
    # Where the whole graph is known: a job sent elsewhere knows itself alone.
    localrule: True
    conda:
        "../../environment.yml"
    threads: 4
    params:
        *code_of("write_manifest"),
        study=STUDY.names,
        # Asked of the graph once it is whole, so that a new rule needs no mention here.
        jobs=lambda _, input: jobs_behind(
            input.products, workflow.dag.jobs, ROOT, {"write_report_source": read_by_report()}
        ),
    script:
        "../../scripts/write_manifest.py"
