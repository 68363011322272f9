# Published findings compared with the tables of the study.


rule score_claims:
    """Score every published finding: reproduced, differs, suspect, not computable, not run."""
    input:
        tables=lambda _: [path for tables in STUDY.find_claim_tables().values() for path in tables.values()],
        claims=[mark_local(make_relative(file)) for file, _ in STUDY.claim_files],
    output:
        scorecard=mark_for_report(f"{STUDY_RESULTS}/scorecard.csv", "table", "Published findings", trace="all"),
        implied=f"{STUDY_RESULTS}/implied_n.csv",
        published=f"{STUDY_RESULTS}/published_values.csv",
        tables=f"{STUDY_RESULTS}/study_tables.csv",
    log:
        f"logs/{STUDY_FOLDER}/score_claims.log",
    benchmark:
        f"benchmarks/{STUDY_FOLDER}/score_claims.tsv"
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("score_claims"),
    params:
        code=hash_code("score_claims"),
        study=STUDY.datasets,
        folders=STUDY.folders,
        # In the order of input.tables.
        tables=lambda _: {trace: list(tables) for trace, tables in STUDY.find_claim_tables().items()},
    script:
        "../../scripts/score_claims.py"
