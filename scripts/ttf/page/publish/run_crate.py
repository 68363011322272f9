"""How the results were made, for ro-crate-metadata.json: Process, Workflow and Provenance Run Crate 0.5.

A job of Snakemake is an action of a script on inputs, with results; the run is an action of the workflow; the engine
organised it. All of it is told by the manifest, which knows no times: neither do the actions.
"""

from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote

from ttf.page.publish.entities import entity, ids, refer

_RUNS = "https://w3id.org/ro/wfrun"
_VERSION = "0.5"
WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
RUN, ENGINE, ORGANISED = "#run", "#engine", "#organised"


def run_of(
    manifest: Mapping, parts: Iterable[str], workflow: str, version: str, agent: dict | list[dict]
) -> tuple[list[dict], dict, dict]:
    """(entities, what the root says more, what the workflow says more) of a run.

    parts: the ids of the files in the crate; what is not among them, raw files and tables with a row per job, is
    described by its name, size and SHA-256. workflow: the id of the workflow; version: of Snakemake; agent: who ran it.
    """
    known = manifest["raw"] | manifest["products"]
    there = set(parts)

    def of(path: str) -> str:
        return quote(path) if quote(path) in there else f"#file/{quote(path)}"

    jobs = {name: job for name, job in manifest["jobs"].items() if job["script"]}
    rules = {job["rule"]: job["script"] for job in jobs.values()}
    named = {path for job in jobs.values() for path in (*job["inputs"], *job["outputs"])}
    elsewhere = [_elsewhere(of(path), path, known.get(path, {})) for path in sorted(named) if of(path) not in there]
    actions = [_action(name, job, of, agent) for name, job in jobs.items()]
    steps = [
        entity(f"#step/{rule}", "HowToStep", name=rule, workExample=refer(script)) for rule, script in rules.items()
    ]
    controls = [
        entity(
            f"#control/{quote(name)}",
            "ControlAction",
            name=f"Job {name}, by Snakemake",
            instrument=refer(f"#step/{job['rule']}"),
            object=refer(f"#job/{quote(name)}"),
        )
        for name, job in jobs.items()
    ]
    run = entity(
        RUN,
        "CreateAction",
        name="The run of the study",
        instrument=refer(workflow),
        description="All jobs of the study, from raw tables to pages",
        agent=agent,
        object=refer(*(of(path) for path in sorted(manifest["raw"]))) or None,
        result=refer(*(quote(path) for path in sorted(manifest["products"]) if quote(path) in there)),
    )
    engine = entity(ENGINE, "SoftwareApplication", name="Snakemake", url="https://snakemake.github.io", version=version)
    organised = entity(
        ORGANISED,
        "OrganizeAction",
        name="The jobs of the run, by Snakemake",
        instrument=refer(ENGINE),
        object=ids(controls),
        description="Which job was done for which step",
        agent=agent,
        result=refer(RUN),
    )
    profiles = [
        entity(f"{_RUNS}/{kind}/{_VERSION}", "CreativeWork", name=f"{kind.title()} Run Crate", version=_VERSION)
        for kind in ("process", "workflow", "provenance")
    ]
    profiles.append(entity(WORKFLOW_CRATE, "CreativeWork", name="Workflow RO-Crate", version="1.0"))
    of_root = {"conformsTo": ids(profiles), "mentions": ids([run, organised, *actions])}
    of_workflow = {"hasPart": refer(*sorted(set(rules.values()))), "step": ids(steps)}
    return [*profiles, run, engine, organised, *steps, *controls, *actions, *elsewhere], of_root, of_workflow


def _action(name: str, job: Mapping, of: Callable[[str], str], agent: dict | list[dict]) -> dict:
    return entity(
        f"#job/{quote(name)}",
        "CreateAction",
        name=f"Job {name}",
        description=f"Rule {job['rule']}",
        agent=agent,
        instrument=refer(job["script"]),
        object=refer(*map(of, job["inputs"])) or None,
        result=refer(*map(of, job["outputs"])),
    )


def _elsewhere(at: str, path: str, about: Mapping) -> dict:
    size = str(about["size"]) if "size" in about else None
    return entity(at, "CreativeWork", name=path, contentSize=size, sha256=about.get("sha256"))
