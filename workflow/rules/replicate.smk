# Published findings against the tables of the study.
from study.claims import load_claims

try:
    CLAIMS = load_claims(ROOT / "config" / "claims.yaml", "config/claims.yaml")["claims"]
except ConfigError as error:
    print(f"error in the configuration\n{error}", file=sys.stderr)
    sys.exit(1)


rule score_claims:
    """Every published finding beside what the data give: reproduced, differs, suspect, not computable, not run."""
    input:
        tables=lambda _: [path for tables in tables_of_claims().values() for path in tables.values()],
        claims=local(seen_from_here(ROOT / "config" / "claims.yaml")),
    output:
        scorecard=in_report("results/scorecard.csv", "table", trace="all"),
        implied="results/implied_n.csv",
    log:
        "logs/score_claims.log",
    benchmark:
        "benchmarks/score_claims.tsv"
    group:
        "report"
    conda:
        "../../environment.yml"
    resources:
        **asks_for("score_claims"),
    params:
        *code_of("score_claims"),
        study=config["study"],
        # In the order of the input.
        tables=lambda _: {trace: list(tables) for trace, tables in tables_of_claims().items()},
    script:
        "../../scripts/score_claims.py"
