"""Can the times of the Philly log be of the zone assumed, and how far is its list of machines wrong?"""

from ttf.analysis import Analysis
from ttf.contract import count, table, whole_seconds

ZONE_EVIDENCE = table(
    "zone_evidence",
    "TODO",
    manager_start_s=whole_seconds("Manager start", "TODO"),
    jobs=count("Jobs", "TODO"),
    first_submit_after_s=whole_seconds("First submit after", "TODO"),
    first_submit_after_if_utc_s=whole_seconds("First submit after if utc", "TODO"),
)
LISTED_MACHINES = table(
    "listed_machines",
    "TODO",
    listed_gpus=count("Listed gpus", "TODO"),
    found_gpus=count("Found gpus", "TODO", blank="TODO"),
    nodes=count("Nodes", "TODO"),
)

ANALYSIS = Analysis(
    question="Can the times of the Philly log be of the zone assumed, and how far is its list of machines wrong?",
    theme="data",
    rank=30,
    needs=["jobs", "nodes"],
    applies=lambda trace: trace.entry["format"] == "philly",
    tables=(
        ZONE_EVIDENCE,
        LISTED_MACHINES,
    ),
    sections=["philly_checks"],
    memory_mb=160,
)
