"""Made-up traces of a few hundred jobs in the layout of each format, for one study of all formats."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

JOBS = 300
FIRST = datetime(2017, 10, 3, tzinfo=UTC)
SACCT_COLUMNS = (
    "JobIDRaw|JobID|Cluster|User|Account|Partition|QOS|State|ExitCode|DerivedExitCode|Submit|Eligible|Start|End|ElapsedRaw|"
    "Suspended|TimelimitRaw|NNodes|NodeList|ReqTRES|AllocTRES|Reason|Flags"
)


def write_philly(folder: Path, seed: int = 1) -> None:
    """Write job log, two hours of telemetry, machine list and loss log; jobs have zero to three attempts."""
    draw = random.Random(seed)

    def clock(moment: datetime) -> str:
        return (moment - timedelta(hours=7)).strftime("%Y-%m-%d %H:%M:%S")

    jobs = []
    for number in range(JOBS):
        submitted = FIRST + timedelta(minutes=7 * number + 420)
        status = draw.choice(["Pass", "Pass", "Killed", "Failed"])
        attempts, start = [], submitted
        for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
            start += timedelta(seconds=draw.randrange(1, 2_000))
            end = start + timedelta(seconds=int(draw.expovariate(1 / 4_000)))
            gpus, spread = draw.choice([(1, 1), (1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (4, 4), (2, 8)])
            first_machine = draw.randrange(20)
            servers = [
                {"ip": f"m{(first_machine + k) % 20}", "gpus": [f"gpu{g}" for g in range(gpus)]} for k in range(spread)
            ]
            attempts.append({"start_time": clock(start), "end_time": clock(end), "detail": servers})
            start = end
        if attempts and draw.random() < 0.05:
            attempts[-1]["end_time"] = "None"
        jobs.append(
            {
                "status": status,
                "vc": draw.choice(["6214e9", "11cb48", "b436b2"]),
                "jobid": f"application_1506638472019_{number:05}",
                "attempts": attempts,
                "submitted_time": clock(submitted),
                "user": draw.choice(["aaaaaa", "bbbbbb", "cccccc", "dddddd"]),
            }
        )
    (folder / "cluster_job_log").write_text(json.dumps(jobs))
    lines = ["time,machineId," + ",".join(f"gpu{k}_util" for k in range(8))]
    for minute in range(120):
        time = clock(FIRST + timedelta(minutes=minute + 420)) + " PDT"
        lines += [f"{time},m{m}," + ",".join(f"{draw.random() * 100:.1f}" for _ in range(8)) + "," for m in range(20)]
    (folder / "cluster_gpu_util").write_text("\n".join(lines) + "\n")
    machine_lines = [
        "machineId, number of GPUs, single GPU mem",
        *(f"m{m}, {draw.choice([2, 8])}, 24GB" for m in range(20)),
    ]
    (folder / "cluster_machine_list").write_text("\n".join(machine_lines) + "\n")
    cpu, memory = ["time,machine_id,cpu_util"], ["time,machine_id,mem_total,mem_free"]
    for minute in range(120):
        time = clock(FIRST + timedelta(minutes=minute + 420)) + " PDT"
        cpu += [f"{time},m{m},{draw.random() * 60:.1f}" for m in range(20)]
        memory += [f"{time},m{m},528272672,{draw.randrange(50_000_000)}" for m in range(20)]
    (folder / "cluster_cpu_util").write_text("\n".join(cpu) + "\n")
    (folder / "cluster_mem_util").write_text("\n".join(memory) + "\n")
    losses = ["job,epoch,loss,time"]
    for number in range(0, JOBS, 2):
        started = FIRST + timedelta(minutes=7 * number + 480)
        losses += [
            f"application_1506638472019_{number:05},{epoch},{draw.choice([1, 1, 1, 2]) / epoch + draw.random() / 9},"
            f"{int((started + timedelta(minutes=epoch)).timestamp())}"
            for epoch in range(1, draw.randrange(2, 20))
        ]
    (folder / "losses.csv").write_text("\n".join(losses) + "\n")


def _slurm_like(seed: int, first_submit: datetime):
    """Yield (number, user, group, nodes, GPUs, state, submit, start, end) of JOBS jobs."""
    draw = random.Random(seed)
    for number in range(JOBS):
        submit = first_submit + timedelta(minutes=11 * number)
        start = submit + timedelta(seconds=draw.randrange(600))
        end = start + timedelta(seconds=1 + int(draw.expovariate(1 / 3_000)))
        gpus = draw.choice([0, 1, 2, 8, 8, 64, 256])
        state = draw.choice(["COMPLETED"] * 5 + ["FAILED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"])
        user, group = f"u{draw.randrange(6)}", f"g{draw.randrange(3)}"
        yield number, user, group, max(1, gpus // 8), gpus, state, submit, start, end


def write_helios(folder: Path, seed: int = 2) -> None:
    rows = ["job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"]
    for number, user, vc, nodes, gpus, state, *times in _slurm_like(seed, datetime(2020, 4, 1, tzinfo=UTC)):
        submit, begin, end = (time.strftime("%Y-%m-%d %H:%M:%S") for time in times)
        spans = int((times[2] - times[1]).total_seconds()), int((times[1] - times[0]).total_seconds())
        rows.append(
            f"{number},{user},{vc},{gpus},{4 * max(gpus, 1)},{nodes},{state},{submit},{begin},{end},"
            f"{spans[0]},{spans[1]}"
        )
    (folder / "cluster_log.csv").write_text("\n".join(rows) + "\n")


def write_acme(folder: Path, seed: int = 3) -> None:
    rows = ["job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time"]
    for number, user, _, nodes, gpus, state, *times in _slurm_like(seed, datetime(2023, 3, 1, tzinfo=UTC)):
        submit, begin, end = (f"{time:%Y-%m-%d %H:%M:%S}+08:00" for time in times)
        spans = int((times[2] - times[1]).total_seconds()), int((times[1] - times[0]).total_seconds())
        rows.append(
            f"{number},{user},{nodes},{gpus},{16 * max(gpus, 1)},Other,{state},{submit},{begin},{end},"
            f"{spans[0]},{spans[1]},{float(gpus * spans[0])}"
        )
    (folder / "trace_seren.csv").write_text("\n".join(rows) + "\n")


def write_sacct(folder: Path, seed: int = 4) -> None:
    """Write one dump in which jobs run again after node failures and preemptions."""
    draw = random.Random(seed)
    rows = [SACCT_COLUMNS]
    jobs = _slurm_like(seed, datetime(2025, 1, 1, tzinfo=UTC))
    for number, user, account, nodes, gpus, state, submit, begin, end in jobs:
        first_node = draw.randrange(40)
        hosts = f"n[{first_node:03}-{first_node + nodes - 1:03}]" if nodes > 1 else f"n{first_node:03}"
        gpu_tres = f",gres/gpu={gpus},gres/gpu:a100={gpus}" if gpus else ""
        tres = f"cpu={8 * nodes},mem={64 * nodes}G,node={nodes}{gpu_tres}"
        state = "PREEMPTED" if state == "TIMEOUT" and draw.random() < 0.5 else state
        code = {"FAILED": "1:0", "NODE_FAIL": "0:0"}.get(state, "0:0")
        runs = [(state, code, submit, begin, end)]
        if state in ("NODE_FAIL", "PREEMPTED"):
            restart = end + timedelta(seconds=60)
            runs.append(("COMPLETED", "0:0", end, restart, restart + timedelta(seconds=1_000)))
        for run_state, exit_code, *times in runs:
            moments = [int(time.timestamp()) for time in times]
            shown_state = f"{run_state} by 1000" if run_state == "CANCELLED" else run_state
            rows.append(
                f"{number}|{number}|big|{user}|{account}|main|normal|{shown_state}|{exit_code}|0:0|{moments[0]}|{moments[0]}|"
                f"{moments[1]}|{moments[2]}|{moments[2] - moments[1]}|00:00:00|1440|{nodes}|{hosts}|{tres}|{tres}|None|"
            )
    (folder / "2025.txt").write_text("\n".join(rows) + "\n")


WRITERS = {"philly": write_philly, "helios": write_helios, "acme": write_acme, "sacct": write_sacct}


def write_all(folder: Path) -> dict:
    """Write a trace of each format of WRITERS below `folder` and return their registry."""
    registry = {}
    for name, write in WRITERS.items():
        (folder / name).mkdir(parents=True)
        write(folder / name)
        registry[f"made_{name}"] = {"format": name, "folder": f"{folder.name}/{name}", "note": "Made up for a test."}
    registry["made_philly"]["loss_log"] = f"{folder.name}/philly/losses.csv"
    registry["made_philly"]["window"] = {"from": "2017-10-03T12:00:00-07:00", "to": "2017-10-04T00:00:00-07:00"}
    return registry
