"""Published values of the Alibaba PAI 2020 trace, and assumptions for what was not published; see sample.py."""

from __future__ import annotations

# ---- published counts of the full trace ----

PUBLISHED_TASKS = 1_261_050
PUBLISHED_JOBS = 1_055_501
PUBLISHED_JOB_STATUS = {"Failed": 256_555, "Running": 62_928, "Waiting": 3_663, "Terminated": 732_355}
PUBLISHED_TASK_STATUS = {"Failed": 256_762, "Running": 115_501, "Waiting": 3_714, "Terminated": 885_073}
PUBLISHED_SINGLE = 963_703  # tasks of one instance
PUBLISHED_NO_GPU = 223_965  # tasks with a blank plan_gpu
PUBLISHED_FAILED_NO_GPU = 4_031  # 1.8 % of them
PUBLISHED_PLAN_GPU = {100: 442_591, 25: 272_243, 50: 136_701, 10: 116_648, 200: 16_312, 800: 4_943}
PUBLISHED_GPU_TYPE = {"MISC": 696_000, "T4": 227_000, "P100": 73_000, "V100": 29_000, "V100M32": 19_000}
PUBLISHED_FAILED_JOBS_WITH_END = 25_620
PUBLISHED_RUNNING_JOBS_WITH_END = 1_061
PUBLISHED_WAITING_JOBS_WITH_END = 45
PUBLISHED_TAGGED_JOBS = 1_053_971
PUBLISHED_GROUP_TAGS = 1_055_032
PUBLISHED_LATE_FAILURE_PER_MILLE = 430  # of the jobs that ended, last quarter of the submissions

# ---- assumptions where nothing was published; each is one number to change ----

# The 47,647 tasks left after the published values: 21 more, so that 27 distinct ones occur. They keep the
# published bands: below 25 14.5 %, 25 to 50 26.2 %, 50 to 100 13.0 %, above 100 2.8 %.
OTHER_PLAN_GPU = {
    20: 14_900, 5: 9_100, 15: 5_200, 1: 2_600, 2: 1_700, 12: 1_300, 8: 900, 3: 500,
    30: 1_400, 40: 1_100, 33: 300, 60: 400, 80: 300, 75: 200, 70: 80, 90: 67,
    400: 5_900, 300: 1_000, 600: 400, 500: 200, 700: 100,
}  # fmt: skip
PLAN_CPU = {
    600: 5_200, 400: 1_000, 800: 620, 200: 520, 1000: 420, 500: 380, 1200: 360, 100: 340, 300: 240, 1600: 110,
    700: 90, 900: 80, 1100: 60, 2400: 70, 1500: 60, 2000: 55, 250: 40, 50: 35, 150: 30, 1400: 30, 1800: 28,
    3200: 24, 4800: 12, 6400: 4, 450: 15, 350: 12, 550: 10, 1300: 12, 1700: 9, 1900: 8, 2200: 8, 2500: 7,
    2800: 6, 3000: 9, 3600: 5, 4000: 6, 4400: 2, 5000: 3, 5600: 2, 6000: 3, 20: 3, 10: 3, 750: 4, 650: 4,
    2300: 2, 2600: 2, 3400: 1, 4600: 1, 5200: 1,
}  # fmt: skip
PUBLISHED_ZERO_PLAN_CPU = 11
NAMED_PLAN_MIB = {
    30_000: 3_600, 10_000: 900, 20_000: 800, 40_000: 420, 60_000: 260, 50_000: 240, 8_192: 380, 16_384: 330,
    32_768: 300, 4_096: 190, 65_536: 60, 2_048: 110, 1_024: 60, 512: 15, 100_000: 55, 120_000: 24, 131_072: 14,
    200_000: 9, 300_000: 4, 29_000: 300, 5_000: 180, 15_000: 150, 25_000: 130, 12_000: 90, 48_000: 60,
}  # fmt: skip
EXTRA_TASKS = {  # (status of the job, status of its further task) -> tasks at full size
    ("Failed", "Failed"): PUBLISHED_TASK_STATUS["Failed"] - PUBLISHED_JOB_STATUS["Failed"],
    ("Failed", "Terminated"): 5_000,
    ("Failed", "Running"): 4_000,
    ("Running", "Running"): PUBLISHED_TASK_STATUS["Running"] - PUBLISHED_JOB_STATUS["Running"] - 4_000,
    ("Running", "Terminated"): PUBLISHED_RUNNING_JOBS_WITH_END,
    ("Waiting", "Waiting"): PUBLISHED_TASK_STATUS["Waiting"] - PUBLISHED_JOB_STATUS["Waiting"],
    ("Waiting", "Terminated"): PUBLISHED_WAITING_JOBS_WITH_END,
}
TYPED_NO_GPU = 7_900  # tasks without plan_gpu that still have a gpu_type
FAILED_GANGS_PER_MILLE = 150  # of all gangs; gives the instance-weighted failure share of 14.7 %
SENSOR_SHARE = 0.475  # of the ended instances; 3.03 of 7.52 million instances in all
METRIC_SHARE = 0.664  # of the sensor rows
NULL_WORKER_SHARE = 0.004

# Differences between users, recurrence groups and machines: see sample.py.
USER_LOG_SD, GROUP_LOG_SD, MACHINE_LOG_SD = 1.0, 0.5, 0.4
RUN_BY_USER, RUN_BY_GROUP = 0.1, 0.2
FAILURES_BY_TYPE = {"MISC": 100, "T4": 80, "P100": 110, "V100": 130, "V100M32": 75}
RACK_MACHINES = 16

# The last is a status of instances alone.
STATUSES = ("Failed", "Running", "Waiting", "Terminated", "Interrupted")
FAILED, RUNNING, WAITING, TERMINATED, INTERRUPTED = range(5)

# Counted on 27,583 published rows of the instance table (its end, no random sample). Of failed tries that nothing came
# after 97 % have a start alone, of those that were tried again 64 %; the others have an end alone.
START_ALONE, START_ALONE_IF_RETRIED = 0.97, 0.64
# Running instances with a start; the others have no time at all.
RUNNING_WITH_START = 0.29
# Shares of tasks with a retried instance: of failed ones, and of others that started.
RETRIED_IF_FAILED, RETRIED = 0.08, 0.05
# Tries before the last, in round_to_thousandths of the instances that were tried again.
EARLIER_TRIES = {1: 620, 2: 220, 3: 20, 4: 20, 6: 30, 8: 30, 10: 60}
# The other instances of a gang of which one failed.
WITH_A_FAILED_ONE = {INTERRUPTED: 0.85, TERMINATED: 0.05, RUNNING: 0.03, WAITING: 0.04, FAILED: 0.03}
GPU_TYPES = ("MISC", "T4", "P100", "V100", "V100M32")
NO_TYPE = len(GPU_TYPES)
MISC, T4, P100, V100, V100M32 = range(5)
NO_GPU = -1  # plan_gpu of a task that asks for none

HOUR_S, DAY_S = 3_600, 86_400
SHANGHAI_S = 8 * HOUR_S  # no daylight saving time in any year that could be meant
FIRST_START_S = 494_319
START_HOURS = 1_642
TRACE_END_S = (FIRST_START_S // HOUR_S + START_HOURS + 1) * HOUR_S
HOUR_WEIGHTS = (30, 24, 20, 17, 15, 15, 16, 20, 30, 46, 62, 66, 54, 56, 70, 74, 74, 70, 58, 54, 56, 56, 50, 40)
WEEKDAY_WEIGHTS = (104, 108, 110, 108, 102, 72, 66)  # Monday first

# Quantile functions: probability -> value, with straight lines between (of the logarithm, for times and
# sizes). Seconds. p50, p75 and p90 are the published ones; the tails are fitted to the published means by type
# and to 0.14 % of the runs above 48 hours.
RUN_QUANTILES_S: dict[int, dict[float, float]] = {
    MISC: {0: 0.3, 0.1: 42, 0.25: 150, 0.5: 689, 0.75: 3_923, 0.9: 12_443, 0.99: 50_000, 0.9986: 150_000, 1: 4e5},
    T4: {0: 0.3, 0.1: 35, 0.25: 95, 0.5: 309, 0.75: 1_181, 0.9: 5_676, 0.99: 35_000, 0.9986: 100_000, 1: 3e5},
    P100: {0: 0.3, 0.1: 45, 0.25: 190, 0.5: 967, 0.75: 4_792, 0.9: 15_674, 0.99: 86_000, 0.9986: 235_000, 1: 8e5},
    V100: {0: 0.3, 0.1: 50, 0.25: 230, 0.5: 1_295, 0.75: 5_337, 0.9: 17_728, 0.99: 128_000, 0.9986: 300_000, 1: 9e5},
    V100M32: {0: 0.3, 0.1: 45, 0.25: 210, 0.5: 1_163, 0.75: 7_963, 0.9: 24_873, 0.99: 140_000, 0.9986: 3e5, 1: 9e5},
    NO_TYPE: {0: 0.3, 0.1: 40, 0.25: 140, 0.5: 600, 0.75: 3_400, 0.9: 11_500, 0.99: 50_000, 0.9986: 150_000, 1: 4e5},
}  # fmt: skip
# Time from the start of the job to its end; the queueing delay is taken out of it.
FAILED_QUANTILES_S = {
    0: 0.4, 0.1: 14, 0.268: 60, 0.5: 220, 0.674: 600, 0.85: 4_600, 0.95: 25_000, 0.99: 90_000, 0.999: 260_000,
    1: 600_000,
}  # fmt: skip
WAIT_QUANTILES_S: dict[int, dict[float, float]] = {
    MISC: {0: 0.6, 0.5: 10, 0.9: 111, 0.99: 3_600, 1: 60_000},
    T4: {0: 0.4, 0.5: 3, 0.9: 16, 0.99: 900, 1: 40_000},
    P100: {0: 0.6, 0.5: 13, 0.9: 827, 0.99: 9_000, 1: 90_000},
    V100: {0: 0.8, 0.5: 91, 0.9: 6_724, 0.99: 40_000, 1: 200_000},
    V100M32: {0: 0.8, 0.5: 104, 0.9: 3_630, 0.99: 30_000, 1: 200_000},
    NO_TYPE: {0: 0.4, 0.5: 6, 0.9: 60, 0.99: 2_400, 1: 40_000},
}
GANG_QUANTILES = {
    0: 1.6, 0.2: 2.5, 0.45: 5, 0.7: 13, 0.85: 28, 0.95: 75, 0.99: 205, 0.999: 760, 0.9999: 2_300, 1: 6_370,
}  # fmt: skip
LARGEST_GANG = 6_330
GROUP_QUANTILES = {0: 0.6, 0.7: 1.5, 0.87: 4.5, 0.95: 10, 0.99: 28, 0.999: 120, 1: 800}  # jobs per group

# Measured / requested, lifetime averages. The value 1 stands at the published share below the request.
CPU_USE = {0: 0.01, 0.3: 0.18, 0.5: 0.38, 0.7: 0.66, 0.8446: 1, 0.95: 1.9, 1: 6}
GPU_USE = {0: 0, 0.12: 0, 0.3: 0.02, 0.5: 0.08, 0.75: 0.35, 0.9: 0.7, 0.9802: 1, 1: 1.5}
MEM_USE = {0: 0.01, 0.3: 0.07, 0.5: 0.17, 0.8: 0.46, 0.9588: 1, 1: 1.8}
CARD_MEM_GB = (12, 16, 16, 16, 32, 16)  # by type code, the last for tasks without a type

# machine type -> (machines, cores, memory in GB of most, of the rest, machines with the rest, GPUs each)
MACHINES = {
    "CPU": (83, 96, 512, 512, 0, 0),
    "MISC": (280, 96, 512, 512, 0, 8),
    "P100": (798, 64, 512, 512, 0, 2),
    "T4": (497, 96, 512, 512, 0, 2),
    "V100": (104, 96, 512, 384, 45, 8),
    "V100M32": (135, 96, 384, 384, 0, 8),
}
ALL_MACHINES_AT_TASKS = PUBLISHED_TASKS // 10  # samples smaller than this have proportionally fewer machines
FEWEST_MACHINES = 2  # of each type

SINGLE_ROLES = {  # the one task of a job, with a GPU
    "tensorflow": 5_200, "PyTorchWorker": 2_400, "worker": 1_300, "xComputeWorker": 420, "OpenmpiWorker": 170,
    "BladeMain": 110, "TVMTuneMain": 90, "XGBoostWorker": 50, "CaffeWorker": 40, "MxnetWorker": 35, "JupyterTask": 90,
}  # fmt: skip
CPU_ROLES = {  # the same without a GPU
    "JupyterTask": 300, "OssToVolumeWorker": 240, "ReduceTask": 130, "MapTask": 120, "TensorboardTask": 60,
    "DataExportTask": 40, "xComputeWorker": 110,
}  # fmt: skip
JOB_FAMILIES = (  # roles that share a job, and how often
    (("worker", "ps", "evaluator"), 70),
    (("chief", "ps", "worker"), 16),
    (("tensorflow", "ps", "TensorboardTask"), 6),
    (("M1", "R2_1", "J3_1_2"), 5),
    (("worker", "ps", "chief"), 2),
    (("M2", "R3_2", "evaluator"), 1),
)
ROLES = tuple(dict.fromkeys([*SINGLE_ROLES, *CPU_ROLES, *(role for family, _ in JOB_FAMILIES for role in family)]))
WORKLOADS = {
    "ctr": 44, "bert": 20, "graphlearn": 14, "inception": 6, "nmt": 5, "resnet": 5, "rl": 4, "vgg": 1, "xlnet": 1,
}  # fmt: skip
USERS_FULL = 1_350
