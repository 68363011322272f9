# Every analysis, a rule each; then all charts of a trace, drawn from the tables alone, and its numbers.


include: "analyses.smk"


RULES_OF_TRACES |= {name: room.traces for name, room in STUDY.rooms.items()}

# Analyses of folders outside the checkout, which a study's configuration names.
for room in STUDY.rooms_outside:

    rule:
        name:
            room.name
        input:
            unpack(lambda wildcards, room=room: given(room.inputs(wildcards.trace))),
        output:
            **{name: table(path, room.title, name in room.declared.updated) for name, path in room.outputs().items()},
            **{name: directory(path) for name, path in room.folders().items()},
        log:
            f"logs/{STUDY.home(room.traces)}/{room.name}.log",
        benchmark:
            f"benchmarks/{STUDY.home(room.traces)}/{room.name}.tsv"
        group:
            GROUP["report" if room.declared.of_study else "analyses"]
        conda:
            ENVIRONMENT
        threads: room.declared.threads
        resources:
            **asks_for(room.name),
        params:
            **told(room.name),
        script:
            "../../scripts/compute.py"


# Traces with the same charts have a rule of their own: named after their format.
for edition, root in EDITIONS.items():
    for kind, alike in STUDY.drawn_alike.items():
        if not (traces := of_edition(edition, alike)):
            continue
        logs = f"{HOME}/published/{{trace}}" if edition else STUDY.home(traces)

        rule:
            """Every chart of a trace, as Vega-Lite and as a picture, those of the open page also for a phone."""
            name:
                f"draw_charts_{kind}{edition}"
            input:
                unpack(lambda wildcards, root=root: given(under(root, STUDY.drawn_from(wildcards.trace)))),
            output:
                index=f"{root}/{STUDY.home(traces)}/figures/index.json",
                specs=[f"{root}/{STUDY.home(traces)}/figures/{chart}.vl.json" for chart in STUDY.charts(traces[0])],
                svgs=[
                    in_report(f"{root}/{STUDY.home(traces)}/figures/{chart}.svg", "chart", room.title)
                    for chart, room in STUDY.charts(traces[0]).items()
                ],
                narrow=[f"{root}/{STUDY.home(traces)}/figures/{chart}.narrow.svg" for chart in STUDY.main(traces[0])],
            log:
                f"logs/{logs}/draw_charts.log",
            benchmark:
                f"benchmarks/{logs}/draw_charts.tsv"
            wildcard_constraints:
                trace=any_of(traces),
            group:
                GROUP["published" if edition else "report" if OF_STUDY in traces else "analyses"]
            conda:
                ENVIRONMENT
            resources:
                **asks_for("draw_charts"),
            params:
                code=code_of(
                    "draw_charts",
                    by_trace=lambda wildcards: [f"{room.module}.charts" for room in STUDY.drawing(wildcards.trace)],
                ),
                charts=lambda wildcards: {
                    room.name: [room.charts(wildcards.trace), room.settings(wildcards.trace)]
                    for room in STUDY.drawing(wildcards.trace)
                },
                main=lambda wildcards: STUDY.main(wildcards.trace),
                folders=lambda wildcards: STUDY.folders_of(
                    [room.name for room in STUDY.drawing(wildcards.trace)]
                    + STUDY.makers(STUDY.drawn_from(wildcards.trace))
                ),
                reads=lambda wildcards: STUDY.makers(STUDY.drawn_from(wildcards.trace)),
                unit=lambda wildcards: STUDY.traces[wildcards.trace].unit if wildcards.trace in STUDY.traces else "job",
                life=lambda wildcards: STUDY.traces[wildcards.trace].life if wildcards.trace in STUDY.traces else "job",
                synthetic=lambda wildcards: wildcards.trace in STUDY.traces and STUDY.traces[wildcards.trace].synthetic,
            script:
                "../../scripts/draw_charts.py"

        if not edition:
            RULES_OF_TRACES[f"draw_charts_{kind}"] = traces


rule summarise:
    """Every number that the report's sentences use, and of a trace its brief: what its first screen says."""
    input:
        unpack(lambda wildcards: given(STUDY.summed_up(wildcards.trace))),
    output:
        brief="results/{trace}/brief.json",
        metrics="results/{trace}/metrics.json",
    log:
        "logs/{trace}/summarise.log",
    benchmark:
        "benchmarks/{trace}/summarise.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **asks_for("summarise"),
    params:
        code=code_of(
            "summarise",
            by_trace=lambda wildcards: [
                module
                for room in STUDY.rooms_of(wildcards.trace)
                for module in (room.module, *room.module_of("numbers"))
            ],
        ),
        analyses=lambda wildcards: [room.name for room in STUDY.rooms_of(wildcards.trace) if room.has("numbers")],
        folders=lambda wildcards: STUDY.folders_of(room.name for room in STUDY.rooms_of(wildcards.trace)),
        about=lambda wildcards: STUDY.briefed(wildcards.trace),
    script:
        "../../scripts/summarise.py"


use rule summarise as summarise_comparison with:
    output:
        metrics=f"{OWN}/{{trace}}/metrics.json",
    log:
        f"logs/{HOME}/{{trace}}/summarise.log",
    benchmark:
        f"benchmarks/{HOME}/{{trace}}/summarise.tsv"
    group:
        GROUP["report"]


if STUDY.pseudonymised:

    use rule summarise as summarise_published with:
        input:
            unpack(lambda wildcards: given(under(PUBLIC, STUDY.summed_up(wildcards.trace)))),
        output:
            brief=f"{PUBLIC}/{{trace}}/brief.json",
            metrics=f"{PUBLIC}/{{trace}}/metrics.json",
        log:
            f"logs/{HOME}/published/{{trace}}/summarise.log",
        benchmark:
            f"benchmarks/{HOME}/published/{{trace}}/summarise.tsv"
        group:
            GROUP["published"]


RULES_OF_TRACES |= {"summarise": STUDY.names, "summarise_comparison": STUDY.subjects[len(STUDY.names) :]}
