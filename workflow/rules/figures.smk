# The charts as pictures, all of a trace in one process: starting the converter takes longer than most charts.
from collections import Counter

# Folder of results -> its charts by the job that draws them, each with its heading in Snakemake's own report.
DRAWN = {trace: charts_of(trace) for trace in config["study"]}
if COMPARISON:
    DRAWN["comparison"] = (tuple((name, "Comparison of the traces") for name in COMPARED),)

PICTURES = {
    folder: [f"results/{folder}/figures/{name}.svg" for name, _ in sum(jobs, ())] for folder, jobs in DRAWN.items()
}

# Which charts a trace has depends on its format and its files, so those with the same have a rule of their own.
DRAWN_ALIKE = {}
for folder, jobs in DRAWN.items():
    DRAWN_ALIKE.setdefault((REGISTRY.get(folder, {}).get("format", folder), jobs), []).append(folder)
RULES_OF_FORMAT = Counter(drawn_format for drawn_format, _ in DRAWN_ALIKE)

for (drawn_format, jobs), folders in DRAWN_ALIKE.items():

    rule:
        name:
            f"render_figures_{drawn_format}" + (f"_{folders[0]}" if RULES_OF_FORMAT[drawn_format] > 1 else "")
        input:
            specs=given_to_pictures(jobs),
        output:
            svgs=[in_report(f"results/{{trace}}/figures/{name}.svg", "chart", theme) for name, theme in sum(jobs, ())],
        log:
            "logs/{trace}/render_figures.log",
        benchmark:
            "benchmarks/{trace}/render_figures.tsv"
        wildcard_constraints:
            trace=any_of(folders),
        group:
            "report" if drawn_format == "comparison" else "analyses"
        conda:
            "../../environment.yml"
        resources:
            **asks_for("render_figures"),
        params:
            *code_of("render_figures"),
        script:
            "../../scripts/render_figures.py"
