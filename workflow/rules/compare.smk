# Several traces of one study side by side. A study of one trace has nothing to compare and plans nothing of this.

# In the order of the report.
COMPARED = ["outcomes", "run_times", "queueing", "failure_share", "mttf"]
COMPARISON = (
    dict(
        {name: f"results/comparison/{name}.csv" for name in COMPARED},
        metrics="results/comparison/metrics.json",
        index="results/comparison/figures/index.json",
        specs=collect("results/comparison/figures/{name}.vl.json", name=COMPARED),
    )
    if len(config["study"]) > 1
    else {}
)

if COMPARISON:

    rule compare_traces:
        """GPU jobs of every trace on one unit: outcomes, run times, queueing, failure share, mean time to failure."""
        input:
            jobs=collect("results/{trace}/jobs.parquet", trace=JOB_TRACES),
            lives=of_every_trace("results/{trace}/lives.parquet"),
        output:
            **COMPARISON,
        log:
            "logs/compare_traces.log",
        benchmark:
            "benchmarks/compare_traces.tsv"
        group:
            "report"
        conda:
            "../../environment.yml"
        threads: 2
        resources:
            **asks_for("compare_traces"),
        params:
            *code_of("compare_traces"),
            about={
                trace: {
                    "unit": FORMATS[REGISTRY[trace]["format"]]["unit"],
                    "gives": FORMATS[REGISTRY[trace]["format"]]["gives"],
                    "synthetic": trace in GENERATED,
                    "outcomes": list(status_words(REGISTRY[trace], FORMATS[REGISTRY[trace]["format"]])),
                }
                for trace in config["study"]
            },
        script:
            "../../scripts/compare_traces.py"
