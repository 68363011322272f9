# Published findings against the tables of the study.


rule score_claims:
    """Every published finding and what the data give: reproduced, differs, suspect, not computable, not run."""
    input:
        tables=lambda _: [path for tables in STUDY.claimed().values() for path in tables.values()],
        claims=[there(seen_from_here(file)) for file, _ in STUDY.claim_files],
    output:
        scorecard=in_report(f"{OWN}/scorecard.csv", "table", "Published findings", trace="all"),
        implied=f"{OWN}/implied_n.csv",
    log:
        f"logs/{HOME}/score_claims.log",
    benchmark:
        f"benchmarks/{HOME}/score_claims.tsv"
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("score_claims"),
    params:
        code=code_of("score_claims"),
        study=STUDY.names,
        folders=STUDY.folders,
        # In the order of the input.
        tables=lambda _: {trace: list(tables) for trace, tables in STUDY.claimed().items()},
    script:
        "../../scripts/score_claims.py"


rule recompute_ettr:
    """What the paper on which this rests states about the effective training time ratio (ETTR), and what the formulas here give."""
    output:
        reference=f"{OWN}/ettr_reference.csv",
    log:
        f"logs/{HOME}/recompute_ettr.log",
    benchmark:
        f"benchmarks/{HOME}/recompute_ettr.tsv"
    group:
        GROUP["report"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("recompute_ettr"),
    params:
        code=code_of("recompute_ettr"),
    script:
        "../../scripts/recompute_ettr.py"
