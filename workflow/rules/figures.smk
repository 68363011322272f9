# The charts as pictures, all of a trace in one process: starting the converter takes longer than most charts.


def specs_of(trace):
    """The charts of a trace as Vega-Lite, those of its analyses after those of the trace itself."""
    life_format = REGISTRY[trace]["format"]
    own = charts_of_lives(life_format) if trace in LIFE_TRACES else CHARTS
    named = [f"results/{trace}/figures/{name}.vl.json" for name in own]
    return named + [
        spec.format(trace=trace) for name in analyses_of(trace) for spec in ANALYSES[name]["outputs"]["specs"]
    ]


# Folder of results -> its charts. Which a trace has depends on its format and files, so each has a rule of its own.
SPECS = {trace: specs_of(trace) for trace in config["study"]}
if COMPARISON:
    SPECS["comparison"] = COMPARISON["specs"]


def themes_of(folder):
    """The heading of each chart of an analysis in Snakemake's own report, in the order of SPECS; none: that of its name."""
    if folder == "comparison":
        return ["Comparison of the traces"] * len(SPECS[folder])
    of_analyses = {
        spec.format(trace=folder): theme_of(name)
        for name in analyses_of(folder)
        for spec in ANALYSES[name]["outputs"]["specs"]
    }
    return [of_analyses.get(spec) for spec in SPECS[folder]]


PICTURES = {folder: [spec.replace(".vl.json", ".svg") for spec in specs] for folder, specs in SPECS.items()}

for folder, specs in SPECS.items():

    rule:
        name:
            f"render_figures_{folder}"
        input:
            specs=specs,
            code=code_of("render_figures"),
        output:
            svgs=[in_report(svg, "chart", theme, folder) for svg, theme in zip(PICTURES[folder], themes_of(folder))],
        log:
            f"logs/{folder}/render_figures.log",
        benchmark:
            f"benchmarks/{folder}/render_figures.tsv"
        group:
            "report" if folder == "comparison" else "analyses"
        conda:
            "../../environment.yml"
        resources:
            **asks_for("render_figures"),
        params:
            of=folder,
        script:
            "../../scripts/render_figures.py"
