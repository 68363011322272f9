"""The peer of the benchmark: what a notebook on this trace does, in plain pandas.

Reads the instance and the task table, groups the instances by task, merges, and takes the mean run time by each of
five features, for success and for everything else. usage: pandas_study.py FOLDER
"""

import sys
from pathlib import Path

import pandas as pd

INSTANCE = "job_name task_name inst_name worker_name inst_id status start_time end_time machine"
TASK = "job_name task_name inst_num status start_time end_time plan_cpu plan_mem plan_gpu gpu_type"


def main(folder: Path) -> None:
    instances = pd.read_csv(folder / "pai_instance_table.csv", header=None, names=INSTANCE.split())
    tasks = pd.read_csv(folder / "pai_task_table.csv", header=None, names=TASK.split())

    instances["start_time"] = instances["start_time"].where(instances["start_time"] > 0)
    instances["end_time"] = instances["end_time"].where(instances["end_time"] > 0)
    per_task = (
        instances.groupby(["job_name", "task_name"])
        .agg(start=("start_time", "min"), end=("end_time", "max"), size=("inst_name", "size"))
        .reset_index()
    )
    per_task["runtime"] = per_task["end"] - per_task["start"]
    jobs = tasks.merge(per_task, on=["job_name", "task_name"], how="inner")

    success = jobs[jobs["status"] == "Terminated"]
    failure = jobs[jobs["status"] != "Terminated"]
    for name, part in (("success", success), ("failure", failure)):
        for feature in ("gpu_type", "plan_gpu", "plan_cpu", "plan_mem", "size"):
            means = part.groupby(feature)["runtime"].mean().reset_index()
            print(name, feature, len(means), round(means["runtime"].mean(), 3))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
