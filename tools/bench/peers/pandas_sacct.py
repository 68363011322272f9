"""A peer of the benchmark: a Slurm dump in plain pandas, down to a row per job.

Times, the first word of the state, GPUs and cores out of the TRES strings, then the records of a job together. It
checks no row. usage: pandas_sacct.py FILE
"""

import sys

import pandas as pd


def main(file: str) -> None:
    frame = pd.read_csv(file, sep="|", dtype=str)
    for name in ("Submit", "Start", "End"):
        frame[name] = pd.to_datetime(pd.to_numeric(frame[name], errors="coerce"), unit="s")
    frame["State"] = frame["State"].str.split().str[0]
    for name in ("ReqTRES", "AllocTRES"):
        frame[f"{name}_gpus"] = pd.to_numeric(frame[name].str.extract(r"gres/gpu=(\d+)")[0])
        frame[f"{name}_cpus"] = pd.to_numeric(frame[name].str.extract(r"cpu=(\d+)")[0])
    frame["runtime"] = (frame["End"] - frame["Start"]).dt.total_seconds()
    jobs = (
        frame.sort_values("Submit")
        .groupby("JobIDRaw", sort=False)
        .agg(
            user=("User", "first"),
            account=("Account", "first"),
            submit=("Submit", "min"),
            start=("Start", "min"),
            end=("End", "max"),
            runtime=("runtime", "sum"),
            state=("State", "last"),
            gpus=("ReqTRES_gpus", "last"),
            cpus=("ReqTRES_cpus", "last"),
            nodes=("NNodes", "last"),
            attempts=("State", "size"),
        )
    )
    print(len(jobs))


if __name__ == "__main__":
    main(sys.argv[1])
