# Ray jobs as CSV: ray list jobs --detail --format json --limit 10000 | jq -r -f config/mappings/ray.jq > jobs.csv
# The dashboard's GET /api/jobs/ gives the same fields. Fields: JobDetails in
# https://docs.ray.io/en/latest/cluster/running-applications/job-submission/rest.html; times are Unix milliseconds.
def seconds: if . == null or . == 0 then null else . / 1000 | floor end;
["id", "type", "entrypoint", "started", "finished", "status", "reason"],
(.[] | [
    (.submission_id // .job_id), .type, .entrypoint, (.start_time | seconds), (.end_time | seconds), .status,
    # On one line; the message of a success says nothing more.
    (if .status == "FAILED" then [.error_type, .message] | map(values) | join(": ") | gsub("\\s+"; " ") else null end)
  ])
| @csv
