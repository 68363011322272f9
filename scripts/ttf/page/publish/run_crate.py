"""The run for ro-crate-metadata.json: Process, Workflow and Provenance Run Crate 0.5.

A Snakemake job is an action of a script on inputs, with results; the run is an action of the workflow, organised by the
engine. Everything comes from the manifest, which has no times, so the actions have none.
"""

from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote

from ttf.page.publish.entities import entity, ids, refer

_RUNS = "https://w3id.org/ro/wfrun"
_VERSION = "0.5"
WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
RUN, ENGINE, ORGANISATION = "#run", "#engine", "#organised"


def describe_run(
    manifest: Mapping, parts: Iterable[str], workflow: str, version: str, agent: dict | list[dict]
) -> tuple[list[dict], dict, dict]:
    """Return (entities, additional facts of the root, additional facts of the workflow) of a run.

    parts: the ids of the files in the crate. Files outside it (raw files, tables with a row per job) get an entity with
    name, size and SHA-256. workflow: the id of the workflow; version: of Snakemake; agent: who ran it.
    """
    files = manifest["raw"] | manifest["products"]
    part_ids = set(parts)

    def file_id(path: str) -> str:
        return quote(path) if quote(path) in part_ids else f"#file/{quote(path)}"

    jobs = {name: job for name, job in manifest["jobs"].items() if job["script"]}
    rules = {job["rule"]: job["script"] for job in jobs.values()}
    job_files = {path for job in jobs.values() for path in (*job["inputs"], *job["outputs"])}
    external_paths = sorted(path for path in job_files if file_id(path) not in part_ids)
    external_files = [_external_file_entity(file_id(path), path, files.get(path, {})) for path in external_paths]
    actions = [_action_entity(name, job, file_id, agent) for name, job in jobs.items()]
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
        object=refer(*(file_id(path) for path in sorted(manifest["raw"]))) or None,
        result=refer(*(quote(path) for path in sorted(manifest["products"]) if quote(path) in part_ids)),
    )
    engine = entity(ENGINE, "SoftwareApplication", name="Snakemake", url="https://snakemake.github.io", version=version)
    organisation = entity(
        ORGANISATION,
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
    root_facts = {"conformsTo": ids(profiles), "mentions": ids([run, organisation, *actions])}
    workflow_facts = {"hasPart": refer(*sorted(set(rules.values()))), "step": ids(steps)}
    entities = [*profiles, run, engine, organisation, *steps, *controls, *actions, *external_files]
    return entities, root_facts, workflow_facts


def _action_entity(name: str, job: Mapping, file_id: Callable[[str], str], agent: dict | list[dict]) -> dict:
    return entity(
        f"#job/{quote(name)}",
        "CreateAction",
        name=f"Job {name}",
        description=f"Rule {job['rule']}",
        agent=agent,
        instrument=refer(job["script"]),
        object=refer(*map(file_id, job["inputs"])) or None,
        result=refer(*map(file_id, job["outputs"])),
    )


def _external_file_entity(entity_id: str, path: str, facts: Mapping) -> dict:
    """Return the RO-Crate entity of a file outside the crate; facts: its `size` in bytes and `sha256`, if recorded."""
    size = str(facts["size"]) if "size" in facts else None
    return entity(entity_id, "CreativeWork", name=path, contentSize=size, sha256=facts.get("sha256"))
