# The provenance of every product: hashes of products, raw files and code; rules, scripts and parameters.
from ttf.study.running.graph import collect_jobs
from ttf.study.running.module import build_rule_namer
from ttf.engine.provenance.digests import workflow_digest

NAME_RULE = build_rule_namer(workflow.modifier)


rule write_manifest:
    """Write the manifest: the inputs, code, rule and parameters of each product."""
    input:
        products=lambda _: select_first_products(list_study_jobs()),
        project=mark_local(make_relative(ROOT / "pyproject.toml")),
    output:
        manifest=f"{STUDY_RESULTS}/manifest.json",
    log:
        f"logs/{STUDY_FOLDER}/write_manifest.log",
    benchmark:
        f"benchmarks/{STUDY_FOLDER}/write_manifest.tsv"
    # Local, because a remote job does not know the whole graph.
    localrule: True
    conda:
        ENVIRONMENT
    threads: 4
    params:
        code=hash_code("write_manifest"),
        study=STUDY.names,
        # For finding files that were added to a folder later.
        folders=lambda _: STUDY.unread_entries_by_folder,
        workflow=lambda _: workflow_digest(),
        # Read from the whole graph, so that a new rule needs no entry here.
        jobs=lambda _, input: collect_jobs(
            input.products, workflow.dag.jobs, ROOT, list_extra_inputs, STUDY.code_files, NAME_RULE
        ),
    script:
        "../../scripts/write_manifest.py"
