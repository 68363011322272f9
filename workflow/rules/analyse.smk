# Every analysis: its rule follows from its declaration (scripts/ttf/analyses/<name>/__init__.py). Then all charts of a
# trace, drawn from the tables alone.


for room in STUDY.rooms.values():

    rule:
        name:
            room.name
        input:
            unpack(lambda wildcards, room=room: given(room.inputs(wildcards.trace))),
        output:
            **{name: in_report(path, "table", room.title) for name, path in room.outputs().items()},
            **{name: directory(path) for name, path in room.folders().items()},
        log:
            f"logs/{STUDY.home(room.traces)}/{room.name}.log",
        benchmark:
            f"benchmarks/{STUDY.home(room.traces)}/{room.name}.tsv"
        wildcard_constraints:
            trace=any_of(room.traces),
        group:
            group_of
        conda:
            ENVIRONMENT
        threads: room.declared.threads
        resources:
            **asks_for(room.name),
        params:
            *code_of("compute", f"{room.module}.compute", *(f"ttf.analyses.{name}" for name in room.reads)),
            analysis=room.name,
            folders=STUDY.folders_of([room.name, *room.reads]),
            reads=room.reads,
            settings=lambda wildcards, room=room: room.settings(wildcards.trace),
        script:
            "../../scripts/compute.py"

    getattr(rules, room.name).rule.docstring = room.declared.question
    RULES_OF_TRACES[room.name] = room.traces


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
                "published" if edition else group_of
            conda:
                ENVIRONMENT
            resources:
                **asks_for("draw_charts"),
            params:
                *code_of(
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


SUMMED_UP = {"summarise": STUDY.names, "summarise_comparison": STUDY.subjects[len(STUDY.names) :]}
SUMMED_UP |= {"summarise_published": STUDY.pseudonymised} if STUDY.pseudonymised else {}

for name, traces in SUMMED_UP.items():
    root = PUBLIC if name == "summarise_published" else "results"
    logs = f"{HOME}/published/{{trace}}" if root != "results" else STUDY.home(traces)

    rule:
        """Every number that the report's sentences use, and of a trace its brief: what its first screen says."""
        name:
            name
        input:
            unpack(lambda wildcards, root=root: given(under(root, STUDY.summed_up(wildcards.trace)))),
        output:
            **({} if name == "summarise_comparison" else {"brief": f"{root}/{STUDY.home(traces)}/brief.json"}),
            metrics=f"{root}/{STUDY.home(traces)}/metrics.json",
        log:
            f"logs/{logs}/summarise.log",
        benchmark:
            f"benchmarks/{logs}/summarise.tsv"
        wildcard_constraints:
            trace=any_of(traces),
        group:
            group_of if root == "results" else "published"
        conda:
            ENVIRONMENT
        resources:
            **asks_for("summarise"),
        params:
            *code_of(
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

    if root == "results":
        RULES_OF_TRACES[name] = traces
