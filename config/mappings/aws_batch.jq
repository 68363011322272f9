# Jobs of AWS Batch as CSV: aws batch describe-jobs --jobs ID ... | jq -r -f config/mappings/aws_batch.jq > jobs.csv
# Fields: https://docs.aws.amazon.com/batch/latest/APIReference/API_JobDetail.html; times are Unix milliseconds.
def seconds: if . == null or . == 0 then null else . / 1000 | floor end;
["id", "name", "queue", "created", "started", "stopped", "status", "reason", "exit_code", "gpus", "cpus", "memory_mib"],
(.jobs[]
  | ([.container.resourceRequirements[]? | {(.type): (.value | tonumber)}] | add // {}) as $requested
  | .timeout.attemptDurationSeconds as $limit
  | [
      .jobId, .jobName, (.jobQueue // "" | sub("^.*job-queue/"; "")),
      (.createdAt | seconds), (.startedAt | seconds), (.stoppedAt | seconds),
      (if .status != "FAILED" then .status
        # Batch ends a job when this time has passed since its start.
        elif $limit != null and .startedAt != null and .stoppedAt != null and .stoppedAt - .startedAt >= 1000 * $limit
        then "TIMEOUT"
        elif .isCancelled == true or .isTerminated == true then "CANCELLED"
        else .status end),
      ([.statusReason, .container.reason] | map(values) | join(": ") | gsub("\\s+"; " ")),
      .container.exitCode, $requested.GPU, ($requested.VCPU // .container.vcpus), ($requested.MEMORY // .container.memory)
    ])
| @csv
