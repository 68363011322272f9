# Where every product comes from: hashes of products, raw files and code; rules, scripts and parameters.
from study.graph import jobs_behind
from study.module import own_name_of
from ttf.engine.provenance.digests import stamp_of_workflow

OWN_NAME = own_name_of(workflow.modifier)


rule write_manifest:
    """The manifest: what each product was made of, by which rule and with which parameters, so that all can be checked."""
    input:
        products=lambda _: one_of_each(jobs_of_study()),
        project=there(seen_from_here(ROOT / "pyproject.toml")),
    output:
        manifest=f"{OWN}/manifest.json",
    log:
        f"logs/{HOME}/write_manifest.log",
    benchmark:
        f"benchmarks/{HOME}/write_manifest.tsv"
    # Where the whole graph is known: a job sent elsewhere knows itself alone.
    localrule: True
    conda:
        ENVIRONMENT
    threads: 4
    params:
        code=code_of("write_manifest"),
        study=STUDY.names,
        # By which a file that came into one later is known.
        folders=lambda _: STUDY.folders_of_raw,
        workflow=lambda _: stamp_of_workflow(),
        # Asked of the graph once it is whole, so that a new rule needs no mention here.
        jobs=lambda _, input: jobs_behind(
            input.products, workflow.dag.jobs, ROOT, read_beside, STUDY.code_files, OWN_NAME
        ),
    script:
        "../../scripts/write_manifest.py"
