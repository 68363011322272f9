"""Labels of the categories of GPU hours."""

from ttf.analyses.lost import account_gpu_hours as category

LABELS = {
    category.PRODUCTIVE: "Productive: ended in success",
    category.FAILED: "Failed, not by infrastructure",
    category.FAILED_UNRECORDED: "Failed, cause not recorded",
    category.TIME_LIMIT: "Ended by a time limit",
    category.INFRA_KEPT: "Ended by infrastructure, saved (assumed)",
    category.INFRA_LOST: "Ended by infrastructure, lost (assumed)",
    category.CANCELLED: "Cancelled",
    category.PREEMPTED: "Preempted",
    category.RESTART: "Restart of retries",
    category.RUNNING: "Running at the end",
    category.UNKNOWN: "Ended, result not recorded",
    category.ABOVE_CAPACITY: "Used above capacity, taken off",
    category.DOWN: "Down for repair",
    category.MAINTENANCE: "Planned maintenance",
    category.NOT_WATCHED: "Not in service",
    category.FREE_WAITED: "Free, waited for",
    category.FREE: "Free, not waited for",
    category.IDLE_WAITED: "Down or free, waited for",
    category.IDLE: "Down or free, not waited for",
    category.NOT_IN_USE: "Not in use",
}
