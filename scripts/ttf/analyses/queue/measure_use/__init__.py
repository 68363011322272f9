"""How busy were GPUs and hosts?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import percentile_columns
from ttf.engine.contract import REASON, count, share, table, truth, words

USE = {
    "n": count("Readings", "Readings, one per minute."),
    "mean_share": share("Mean", "Mean of the readings.", blank=REASON),
    "zero_share": share("At 0%", "Share of readings that are exactly 0.", blank=REASON),
    **percentile_columns(share, "_share", {25: "25th percentile, linear between ranks."}, REASON),
    **percentile_columns(share, "_share", {p: f"{p}th percentile." for p in (50, 75, 90, 95)}, REASON),
}

GPU_USE = table(
    "gpu_use",
    "GPU activity of the GPUs that jobs of one size and outcome held.",
    job_gpus=words("GPUs", "Exact number of GPUs of the job, or all."),
    outcome=words("Outcome", "How the job ended, regardless of the attempt, or all."),
    servers=count("Servers", "Servers of the attempt.", "the row covers any number of servers", unit="servers"),
    dedicated=truth("Dedicated", "Whether only attempts alone on their servers count.", "the row covers all attempts"),
    jobs=count("Jobs", "Jobs with a reading.", blank=REASON, unit="jobs"),
    **USE,
    coverage_share=share("Measured", "Share of the held GPU minutes that have a reading.", blank=REASON),
    coverage_in_span_share=share(
        "Measured in span", "Share of the GPU minutes held in the readings' period that have a reading.", REASON
    ),
)
HOST_USE = table(
    "host_use",
    "How much of the CPU or memory of the machines was in use.",
    resource=words("Of", "cpu or memory (with the page cache)."),
    machine_minutes=words("Machine-minutes", "all, or held: minutes with a GPU of the machine held."),
    **USE,
)

TELEMETRY = {"gpu_util", "cpu_util", "mem_util"}

ANALYSIS = Analysis(
    question="How busy were GPUs and hosts?",
    theme="queue",
    rank=40,
    needs=["raw"],
    applies=lambda trace: not TELEMETRY.isdisjoint(trace.raw_files),
    settings={
        "tables": lambda trace: sorted({"job_log", *TELEMETRY} & set(trace.raw_files)),
        "outcomes": lambda trace: trace.outcomes,
    },
    tables=(GPU_USE, HOST_USE),
    charts={"gpu_use": "gpu_use"},
    sections=["utilisation"],
    memory_mb=300,
    mb_per_gb={"philly": 1580},
)
